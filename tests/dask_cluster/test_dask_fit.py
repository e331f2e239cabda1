"""Fits on blocks give the numbers of fits in memory."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from spread_rows import distributed, make_rows

import coolhead.dask
from coolhead.baselines.multidomain import MultiDomainTemperature
from coolhead.calibrators.clustered import (
    NearestClusterTemperature,
    RegressedTemperature,
)
from coolhead.calibrators.ensemble import TemperatureEnsemble
from coolhead.calibrators.temperature import TemperatureScaling
from coolhead.new_domain import learn_evidence
from coolhead.numerics.temperature import fit_temperature

pytestmark = pytest.mark.usefixtures("one_process")


@pytest.fixture(scope="module", params=[np.float32, np.float64])
def rows(request):
    return make_rows(0, 12_000, request.param)


@pytest.mark.parametrize("groups", [None, "sample_domain", "labels"])
@pytest.mark.parametrize("weighted", [False, True])
def test_temperature(rows, groups, weighted):
    spread = distributed(rows)
    settings = {
        "groups": groups,
        "sample_weight": "sample_weight" if weighted else None,
    }
    mine, theirs = (
        {name: source[key] for name, key in settings.items() if key}
        for source in (spread, rows)
    )
    found = coolhead.dask.fit_temperature(spread["logits"], spread["labels"], **mine)
    wanted = fit_temperature(rows["logits"], rows["labels"], **theirs)
    close = 1e-7 if rows["logits"].dtype == np.float32 else 1e-10
    np.testing.assert_allclose(found.temperature, wanted.temperature, rtol=close)
    np.testing.assert_allclose(found.nll, wanted.nll, rtol=close)
    np.testing.assert_allclose(
        found.log_temperature_se, wanted.log_temperature_se, rtol=1e-6
    )
    np.testing.assert_array_equal(found.status, wanted.status)
    np.testing.assert_array_equal(found.n_samples, wanted.n_samples)
    if groups:
        np.testing.assert_array_equal(found.groups, wanted.groups)


def test_groups_without_a_minimum():
    rows = make_rows(1, 900)
    group = np.arange(900) % 4
    rows["logits"][group == 1] = 0
    rows["labels"][group == 2] = rows["logits"][group == 2].argmax(axis=1)
    rows["labels"][group == 3] = rows["logits"][group == 3].argmin(axis=1)
    spread = distributed(rows, 100)
    found = coolhead.dask.fit_temperature(
        spread["logits"], spread["labels"], groups=group
    )
    wanted = fit_temperature(rows["logits"], rows["labels"], groups=group)
    assert found.status.tolist() == [
        "converged",
        "constant_logits",
        "perfectly_separated",
        "worse_than_uniform",
    ]
    np.testing.assert_allclose(found.temperature, wanted.temperature, rtol=1e-7)
    np.testing.assert_allclose(found.nll, wanted.nll, rtol=1e-7)


@pytest.mark.parametrize(
    "calibrator",
    [
        TemperatureScaling(),
        TemperatureScaling("equal"),
        NearestClusterTemperature(4, n_init=2, scaling="standardize"),
        NearestClusterTemperature(40, n_init=1, min_cluster_size=250, penalty=20.0),
        RegressedTemperature(4, n_init=2, clip="range"),
        TemperatureEnsemble(n_clusters=3),
        TemperatureEnsemble([TemperatureScaling(), RegressedTemperature(3, n_init=1)]),
    ],
    ids=lambda calibrator: str(calibrator)[:45],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_calibrators(calibrator, weighted):
    rows = make_rows(2, 6000)
    if not weighted:
        del rows["sample_weight"]
    wanted = calibrator.fit(**rows).temperature(rows["logits"], rows["features"])
    statuses = np.array(calibrator.status_)
    shown = getattr(calibrator, "clipped_share_", None)
    found = coolhead.dask.fit(calibrator, **distributed(rows))
    assert found is calibrator
    np.testing.assert_allclose(
        found.temperature(rows["logits"], rows["features"]), wanted, rtol=1e-7
    )
    np.testing.assert_array_equal(np.array(found.status_), statuses)
    assert getattr(found, "clipped_share_", None) == shown


def test_a_sample_of_vectors_is_vectors():
    rows = da.arange(12, chunks=4)
    first, second = coolhead.dask.take_sample(3, rows, 2 * rows)
    assert first.tolist() == [0, 4, 8] and second.tolist() == [0, 8, 16]


def test_sample_is_evenly_spaced():
    rows = make_rows(4, 1000)
    spread = distributed(rows, 77)
    logits, labels = coolhead.dask.take_sample(300, spread["logits"], spread["labels"])
    np.testing.assert_array_equal(logits, rows["logits"][::4])
    np.testing.assert_array_equal(labels, rows["labels"][::4])


def test_dataframes_with_blocks_of_unknown_length():
    rows = make_rows(5, 5000)
    table = pd.DataFrame(rows["logits"]).add_prefix("logit_")
    table[[f"feature_{i}" for i in range(6)]] = rows["features"]
    table["label"], table["domain"] = rows["labels"], rows["sample_domain"]
    table["row"] = np.arange(5000)
    frame = dd.from_pandas(table, npartitions=7)
    frame = frame[frame["row"] < 4000]  # empties the last partition
    kept = {name: values[:4000] for name, values in rows.items()}
    columns = [name for name in table if name.startswith("logit_")]
    wide = [name for name in table if name.startswith("feature_")]
    calibrator = coolhead.dask.fit(
        TemperatureEnsemble(n_clusters=3),
        frame[columns],
        frame["label"],
        features=frame[wide],
    )
    wanted = TemperatureEnsemble(n_clusters=3).fit(
        kept["logits"], kept["labels"], features=kept["features"]
    )
    inputs = kept["logits"], kept["features"]
    np.testing.assert_allclose(
        calibrator.temperature(*inputs), wanted.temperature(*inputs), rtol=1e-7
    )
    found = coolhead.dask.fit_temperature(
        frame[columns], frame["label"], groups=frame["domain"]
    )
    assert found.groups.tolist() == ["art", "clipart", "photo"]
    assert found.n_samples.sum() == 4000
    proba = coolhead.dask.predict_proba(calibrator, frame[columns], frame[wide])
    np.testing.assert_allclose(
        proba.compute(), wanted.predict_proba(*inputs), atol=1e-6
    )


def test_binary_scores():
    rows = make_rows(6, 3000)
    scores, labels = rows["logits"][:, 0], rows["labels"] % 2
    spread = da.from_array(scores, chunks=400)
    found = coolhead.dask.fit(TemperatureScaling(), spread, labels)
    wanted = TemperatureScaling().fit(scores, labels)
    assert found.temperature_ == pytest.approx(wanted.temperature_, rel=1e-7)
    np.testing.assert_allclose(
        coolhead.dask.predict_proba(found, spread).compute(),
        wanted.predict_proba(scores),
        atol=1e-6,
    )


def test_what_is_wrong_is_named():
    rows = make_rows(8, 2000)
    spread = distributed(rows, 300)
    logits, labels = spread["logits"], spread["labels"]
    broken = rows["logits"].copy()
    broken[1234, 3] = np.nan
    with pytest.raises(ValueError, match=r"from row 1200 on: logits .* NaN in row 34"):
        coolhead.dask.fit_temperature(da.from_array(broken, chunks=(300, -1)), labels)
    with pytest.raises(ValueError, match=r"labels holds 9 in row 0 .*wanted 0\.\.7"):
        coolhead.dask.fit_temperature(logits, da.where(labels > 5, 9, labels) * 0 + 9)
    with pytest.raises(ValueError, match="labels has 1999 rows, the logits have 2000"):
        coolhead.dask.fit_temperature(logits, labels[1:])
    with pytest.raises(ValueError, match="sample_weight is zero in every row"):
        coolhead.dask.fit_temperature(logits, labels, sample_weight=0.0 * labels)
    with pytest.raises(ValueError, match="features is missing"):
        coolhead.dask.fit(NearestClusterTemperature(), logits, labels)
    with pytest.raises(TypeError, match="logits is a ndarray; wanted a Dask array"):
        coolhead.dask.fit_temperature(rows["logits"], labels)
    with pytest.warns(UserWarning, match="in memory on 500 of 2000 rows"):
        coolhead.dask.fit(MultiDomainTemperature(), **spread, sample_rows=500)
    with pytest.raises(ValueError, match="sample_domain is missing"):
        coolhead.dask.fit(TemperatureScaling("equal"), logits, labels)


def test_a_second_fit_forgets_what_the_first_had_seen(rows):
    """Evidence of other rows would move the answers for a new domain."""
    given = {"features": rows["features"], "sample_domain": rows["sample_domain"]}
    calibrator = TemperatureScaling().fit(rows["logits"], rows["labels"], **given)
    calibrator.evidence_ = learn_evidence(
        calibrator, rows["logits"], rows["labels"], **given
    )
    spread = distributed(rows)
    coolhead.dask.fit(calibrator, spread["logits"], spread["labels"])
    assert not hasattr(calibrator, "evidence_")
