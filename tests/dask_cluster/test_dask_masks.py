"""Masked classes, odd weights and lopsided problems on blocks."""

import dask.array as da
import numpy as np
import pytest
from spread_rows import distributed, make_rows

import coolhead.dask
from coolhead.numerics.temperature import fit_temperature

pytestmark = pytest.mark.usefixtures("one_process")


@pytest.mark.parametrize("value", [-1e9, float(np.finfo(np.float32).min), -np.inf])
def test_masked_classes(value):
    rows = make_rows(3, 12_000)
    want = fit_temperature(rows["logits"], rows["labels"], groups=rows["sample_domain"])
    masked = np.full((12_000, 2), value, np.float32)
    rows["logits"] = np.column_stack([rows["logits"], masked])
    spread = distributed(rows)
    found = coolhead.dask.fit_temperature(
        spread["logits"], spread["labels"], groups=spread["sample_domain"]
    )
    np.testing.assert_allclose(found.temperature, want.temperature, rtol=1e-6)
    np.testing.assert_allclose(found.nll, want.nll, rtol=1e-6)
    np.testing.assert_array_equal(found.status, want.status)


def test_a_row_of_a_masked_class_is_left_out_with_a_warning():
    rows = make_rows(4, 300)
    rows["logits"][170, rows["labels"][170]] = -np.inf
    kept = np.arange(300) != 170
    want = fit_temperature(rows["logits"][kept], rows["labels"][kept])
    spread = distributed(rows, 100)
    with pytest.warns(UserWarning, match="1 of 300 rows are left out"):
        found = coolhead.dask.fit_temperature(spread["logits"], spread["labels"])
    assert found.temperature == pytest.approx(want.temperature, rel=1e-7)


@pytest.mark.parametrize("weight", [1e-320, 1e300])
def test_weights_at_the_ends_of_the_number_range(weight):
    rows = make_rows(5, 900)
    spread = distributed(rows, 200)
    weights = da.full(900, weight, chunks=211)
    found = coolhead.dask.fit_temperature(
        spread["logits"], spread["labels"], sample_weight=weights
    )
    want = fit_temperature(rows["logits"], rows["labels"])
    assert found.status == "converged"
    assert found.temperature == pytest.approx(want.temperature, rel=1e-6)


def test_lopsided_problems_in_single_precision():
    rng = np.random.default_rng(0)
    logits = np.zeros((600, 1000), np.float32)
    logits[:, 0] = 3.0
    labels = (0.05 * logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    labels[:3] = 0
    want = fit_temperature(logits.astype(np.float64), labels)
    found = coolhead.dask.fit_temperature(
        da.from_array(logits, chunks=(170, 400)), da.from_array(labels, chunks=200)
    )
    assert found.status == want.status == "converged"
    assert found.temperature == pytest.approx(want.temperature, rel=1e-5)


def test_a_block_of_masked_rows_alone():
    rows = make_rows(6, 300)
    masked = np.arange(100, 200)
    rows["logits"][masked, rows["labels"][masked]] = -np.inf
    kept = np.setdiff1d(np.arange(300), masked)
    want = fit_temperature(rows["logits"][kept], rows["labels"][kept])
    spread = distributed(rows, 100)
    with pytest.warns(UserWarning, match="100 of 300 rows are left out"):
        found = coolhead.dask.fit_temperature(spread["logits"], spread["labels"])
    assert found.temperature == pytest.approx(want.temperature, rel=1e-7)
    assert found.n_samples == 200
