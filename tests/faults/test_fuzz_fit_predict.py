"""Any shape, type, layout and value: a sound result, or a ValueError that explains."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from coolhead.calibrators.clustered import (
    NearestClusterTemperature,
    RegressedTemperature,
)
from coolhead.calibrators.ensemble import TemperatureEnsemble
from coolhead.calibrators.temperature import TemperatureScaling

# Labels of masked classes are left out with a warning, which is tested elsewhere.
pytestmark = pytest.mark.filterwarnings("ignore:.*left out of the calibration")
# Always the same examples, so that a failure is never a matter of luck.
QUICK = settings(max_examples=60, deadline=None, derandomize=True)
DTYPES = ["f2", "f4", "f8", ">f4", ">f8", "i1", "i4", "u2", "i8"]
MAKERS = [
    TemperatureScaling,
    lambda: NearestClusterTemperature(3, n_init=1, min_cluster_size=2),
    lambda: RegressedTemperature(3, n_init=1, min_cluster_size=2),
    lambda: TemperatureEnsemble(n_clusters=2),
]


def layouts(array, kind):
    """The same values behind other strides."""
    if kind == "fortran":
        return np.asfortranarray(array)
    if kind == "strided":
        wide = np.zeros((2 * len(array), 3 * array.shape[1]), array.dtype)
        wide[::2, ::3] = array
        return wide[::2, ::3]
    if kind == "reversed":
        return np.ascontiguousarray(array[::-1])[::-1]
    if kind == "read-only":
        array = array.copy()
        array.flags.writeable = False
    return array


@st.composite
def matrices(draw, n_rows, n_columns, limit):
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    shape = (n_rows, n_columns)
    if draw(st.booleans()):
        # Ordinary numbers of any scale; arbitrary bits come with the other branch.
        rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
        scale = 10.0 ** draw(st.integers(-8, 4))
        with np.errstate(over="ignore", invalid="ignore"):
            array = (rng.normal(size=shape) * scale).astype(dtype)
    else:
        array = draw(hnp.arrays(dtype, shape))
        if dtype.kind == "f" and dtype.itemsize == 8:
            array = np.clip(array, -limit, limit).astype(dtype)
    kinds = ["plain", "fortran", "strided", "reversed", "read-only"]
    return layouts(array, draw(st.sampled_from(kinds)))


@st.composite
def problems(draw):
    n_rows, n_classes = draw(st.integers(1, 40)), draw(st.integers(2, 6))
    # A temperature may be 300 times the logits, and distances are squared: beyond
    # these limits they leave the range of float64.
    logits = draw(matrices(n_rows, n_classes, limit=1e300))
    features = draw(matrices(n_rows, draw(st.integers(1, 5)), limit=1e150))
    labels = draw(hnp.arrays(np.int64, n_rows, elements=st.integers(0, n_classes - 1)))
    return logits, labels, features


def fit_quietly(calibrator, logits, labels, features):
    with warnings.catch_warnings():
        # Fewer distinct points than clusters: said by a warning, tested elsewhere.
        warnings.filterwarnings("ignore", message="n_clusters is")
        return calibrator.fit(logits, labels, features=features)


@pytest.mark.parametrize("maker", MAKERS)
@QUICK
@given(problem=problems())
def test_fit_and_predict_are_sound_or_explain(maker, problem):
    logits, labels, features = problem
    before = logits.copy(), labels.copy(), features.copy()
    calibrator = maker()
    try:
        fit_quietly(calibrator, logits, labels, features)
    except ValueError as error:
        assert any(word in str(error) for word in ("logits", "logit is", "features"))
        return
    temperature = calibrator.temperature(logits, features)
    p = calibrator.predict_proba(logits, features)
    assert np.isfinite(temperature).all()
    assert (temperature > 0).all()
    assert np.isfinite(p).all()
    assert p.shape == logits.shape
    assert np.allclose(p.sum(axis=1, dtype=np.float64), 1, atol=1e-5)
    # The largest logit keeps the largest probability; ties may stay ties.
    chosen = p[np.arange(len(p)), logits.argmax(axis=1)]
    assert np.array_equal(chosen, p.max(axis=1))
    for array, copy in zip((logits, labels, features), before, strict=True):
        assert array.tobytes() == copy.tobytes()


@QUICK
@given(problem=problems(), kind=st.sampled_from(["fortran", "strided", "reversed"]))
def test_the_layout_does_not_matter(problem, kind):
    logits, labels, _ = problem
    results = []
    for array in (logits, layouts(logits, kind)):
        try:
            calibrator = TemperatureScaling().fit(array, labels)
        except ValueError as error:
            results.append(str(error))
        else:
            results.append(calibrator.predict_proba(np.ascontiguousarray(logits)))
    assert type(results[0]) is type(results[1])
    if isinstance(results[0], str):
        assert results[0] == results[1]
    else:
        assert np.allclose(results[0], results[1], rtol=1e-4, atol=1e-6)
