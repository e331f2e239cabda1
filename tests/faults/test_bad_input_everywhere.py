"""Bad input to every calibrator and metric: a sound result, or one line that explains.

The lists are generated from the package: what is added there is tried here.
"""

import inspect
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import coolhead.metrics
from contract.problems import calibrators
from coolhead.calibrators.data import CalibrationData, fit_with

EVERY = calibrators()
N_ROWS, N_CLASSES, N_FEATURES = 45, 4, 3
ODD = [np.nan, np.inf, -np.inf, 1e300, -1e300, 1e-320, 2.0**40, -0.0]


def settings_of(examples):
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )


def ordinary(seed, n_rows=N_ROWS):
    rng = np.random.default_rng(seed)
    z = rng.normal(scale=2, size=(n_rows, N_CLASSES))
    return {
        "logits": 2 * z,
        "labels": (z + rng.gumbel(size=z.shape)).argmax(axis=1),
        "features": rng.normal(size=(n_rows, N_FEATURES)),
        "sample_domain": np.arange(n_rows) % 3,
        "reference_features": rng.normal(size=(20, N_FEATURES)),
        "target_features": rng.normal(size=(30, N_FEATURES)),
        "target_logits": rng.normal(size=(30, N_CLASSES)),
        "sample_weight": rng.exponential(size=n_rows),
    }


def entry(array, place, value):
    array = np.array(array, copy=True)
    if array.size:
        with np.errstate(all="ignore"):
            array.flat[place % array.size] = value
    return array


# Each takes an array and a random integer.
DAMAGE = {
    "one odd number": lambda a, i: entry(np.asarray(a, float), i // 8, ODD[i % 8]),
    "all alike": lambda a, i: np.full_like(a, [0, 1, 7][i % 3]),
    "one row less": lambda a, i: a[:-1],
    "no rows": lambda a, i: a[:0],
    "one more axis": lambda a, i: a[..., None],
    "one axis less": lambda a, i: a.ravel(),
    "texts": lambda a, i: a.astype(str),
    "objects": lambda a, i: entry(a.astype(object), i, [None, "x", {}][i % 3]),
    "complex": lambda a, i: a.astype(complex) * 1j,
    "half precision": lambda a, i: a.astype(np.float16),
    "negative": lambda a, i: -1 - np.abs(a),
    "halves": lambda a, i: a + 0.5,
    "huge": lambda a, i: np.asarray(a, float) * 10.0 ** (i % 300),
    "tiny": lambda a, i: np.asarray(a, float) * 10.0 ** -(i % 320),
    "hidden values": lambda a, i: np.ma.masked_greater(a, 0.5),
    "dates": lambda a, i: a.astype("i8").astype("M8[s]"),
    "nothing": lambda a, i: None,
    "a number": lambda a, i: 3.0,
    "lists of other lengths": lambda a, i: [[1.0], [1.0, 2.0]],
}
damages = st.tuples(
    st.sampled_from(sorted(ordinary(0))),
    st.sampled_from(sorted(DAMAGE)),
    st.integers(0, 2**31),
)


def explained(error):
    """One line that says something, and not the words of somebody else's mistake."""
    text = str(error)
    assert text and "\n" not in text, text
    return True


@pytest.mark.parametrize("name", EVERY)
@settings_of(12)
@given(
    seed=st.integers(0, 50),
    several=st.lists(damages, min_size=1, max_size=2, unique_by=lambda one: one[0]),
)
def test_damaged_calibration_data(name, seed, several):
    given_arrays = ordinary(seed)
    for argument, how, number in several:
        array = given_arrays[argument]
        if isinstance(array, np.ndarray):
            with np.errstate(all="ignore"):
                given_arrays[argument] = DAMAGE[how](array, number)
    logits, labels = given_arrays.pop("logits"), given_arrays.pop("labels")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            data = CalibrationData.of(logits, labels, **given_arrays)
            fitted = fit_with(clone(EVERY[name]), data)
            answer = fitted.predict_proba(data.logits, data.features)
        except (ValueError, TypeError) as error:
            assert explained(error)
            return
    assert answer.shape == data.logits.shape
    assert np.isfinite(answer).all() and (answer >= 0).all()
    np.testing.assert_allclose(answer.sum(axis=1, dtype=float), 1, atol=1e-5)


@pytest.fixture(scope="module")
def fits():
    rows, made = ordinary(0), {}
    data = {
        key: value for key, value in rows.items() if key not in ("logits", "labels")
    }
    for name, calibrator in EVERY.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            record = CalibrationData.of(rows["logits"], rows["labels"], **data)
            made[name] = fit_with(clone(calibrator), record)
    return made


@settings_of(300)
@given(
    name=st.sampled_from(sorted(EVERY)),
    seed=st.integers(0, 50),
    argument=st.sampled_from(["logits", "features"]),
    how=st.sampled_from(sorted(DAMAGE)),
    number=st.integers(0, 2**31),
)
def test_damaged_rows_to_predict(fits, name, seed, argument, how, number):
    rows = ordinary(seed, n_rows=8)
    with np.errstate(all="ignore"):
        rows[argument] = DAMAGE[how](rows[argument], number)
    try:
        answer = fits[name].predict_proba(rows["logits"], rows["features"])
    except (ValueError, TypeError) as error:
        assert explained(error)
        return
    assert np.isfinite(answer).all()
    np.testing.assert_allclose(answer.sum(axis=1, dtype=float), 1, atol=1e-5)


def scores():
    """Metrics of what is right and how sure one was."""
    found = {}
    for name in coolhead.metrics.__all__:
        function = getattr(coolhead.metrics, name)
        if inspect.isfunction(function):
            takes = inspect.signature(function).parameters.values()
            needed = [each.name for each in takes if each.default is each.empty]
            if needed in (["labels", "probabilities"], ["labels"]):
                found[name] = function
    return found


SCORES = scores()


def test_the_metrics_are_found():
    assert len(SCORES) >= 8, sorted(SCORES)


@settings_of(400)
@given(
    name=st.sampled_from(sorted(SCORES)),
    seed=st.integers(0, 50),
    vectors=st.booleans(),
    which=st.integers(0, 1),
    how=st.sampled_from(sorted(DAMAGE)),
    number=st.integers(0, 2**31),
)
def test_damaged_scores(name, seed, vectors, which, how, number):
    rows = ordinary(seed)
    powers = np.exp(rows["logits"])
    sure = powers / powers.sum(axis=1, keepdims=True)
    right = sure.argmax(axis=1) == rows["labels"]
    given_arrays = [right.astype(int), sure.max(axis=1)]
    if vectors:
        given_arrays = [rows["labels"], sure]
    with np.errstate(all="ignore"):
        given_arrays[which] = DAMAGE[how](given_arrays[which], number)
    try:
        found = SCORES[name](*given_arrays)
    except (ValueError, TypeError) as error:
        assert explained(error)
        return
    assert not np.ma.is_masked(given_arrays[which]), "what a mask hides is used"
    if isinstance(found, float):
        assert not np.isnan(found)
