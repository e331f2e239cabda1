"""The number of BLAS threads changes no result, and is left as it was found."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import coolhead as ch
from contract.problems import calibrators, fitted, ordinary_problem
from coolhead.shift import density_ratio
from coolhead.shift.clusters import partition_features

# Outside models bring their own arithmetic.
EVERY = {name: c for name, c in calibrators().items() if name != "OutsideCalibrator"}


# Large enough for BLAS to divide its products among threads; in double precision, of
# which twelve digits are promised.
PROBLEM = {
    key: value.astype(float) if getattr(value, "dtype", None) == np.float32 else value
    for key, value in ordinary_problem(2100, 24, 300).items()
}


def blas():
    found = threadpool_info()
    return [lib["num_threads"] for lib in found if lib["user_api"] == "blas"]


@pytest.mark.parametrize("name", EVERY)
def test_one_and_two_threads_give_the_same_predictions(name):
    logits, features = PROBLEM["logits"], PROBLEM["features"]
    answers = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            calibrator = fitted(EVERY[name], PROBLEM)
            details = calibrator.details(logits, features)
            sure, _ = calibrator.confidence(logits[:5], features[:5])
            answers.append((details.probabilities, sure, details.distance))
    for one, two in zip(*answers, strict=True):
        if one is not None:
            np.testing.assert_allclose(one, two, rtol=1e-12)


@pytest.mark.parametrize(
    "compute",
    [
        lambda: (
            ch.fit_temperature(
                np.repeat(PROBLEM["logits"], 10, axis=0),
                np.repeat(PROBLEM["labels"], 10),
            ).temperature
        ),
        lambda: (
            density_ratio(PROBLEM["features"][::2], PROBLEM["features"][1::2]).weights
        ),
        lambda: partition_features(PROBLEM["features"], 8).clusters.centers,
    ],
)
def test_functions_too(compute):
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            found.append(compute())
    np.testing.assert_allclose(*found, rtol=1e-12)


def test_fits_in_threads_leave_blas_as_it_was():
    rows = {key: PROBLEM[key][:300] for key in ("logits", "labels", "features")}

    def fit(seed):
        return ch.NearestClusterTemperature(4, random_state=seed).fit(
            rows["logits"], rows["labels"], features=rows["features"]
        )

    with threadpool_limits(2, user_api="blas"):
        before = blas()
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(fit, range(32)))
        assert blas() == before
