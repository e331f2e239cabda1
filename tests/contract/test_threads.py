"""The number of BLAS threads changes no bit, and is left as it was found."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import coolhead as ch
from contract.problems import calibrators, fitted, ordinary_problem
from coolhead.numerics.blocks import blas_threads, one_blas_thread
from coolhead.shift import density_ratio
from coolhead.shift.clusters import partition_features

# Outside models bring their own arithmetic.
EVERY = {name: c for name, c in calibrators().items() if name != "OutsideCalibrator"}


# Large enough for BLAS to divide its products among threads.
PROBLEM = ordinary_problem(2100, 24, 300)


def blas():
    found = threadpool_info()
    return [lib["num_threads"] for lib in found if lib["user_api"] == "blas"]


@pytest.mark.parametrize("name", EVERY)
def test_one_and_two_threads_give_the_same_bits(name):
    logits, features = PROBLEM["logits"], PROBLEM["features"]
    answers = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            calibrator = fitted(EVERY[name], PROBLEM)
            details = calibrator.details(logits, features)
            sure, _ = calibrator.confidence(logits[:5], features[:5])
            answers.append((details.probabilities, sure, details.distance))
    for one, two in zip(*answers, strict=True):
        assert one is two is None or np.array_equal(one, two)


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
    assert np.array_equal(*found)


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


def test_the_first_lowers_and_the_last_sets_back():
    with threadpool_limits(2, user_api="blas"):
        before, first, second = blas(), one_blas_thread(), one_blas_thread()
        with first:
            assert set(blas()) == {1} and blas_threads() == 2
            # Another thread comes and stays longer.
            entered, leave = threading.Event(), threading.Event()

            def other():
                with second:
                    entered.set()
                    leave.wait(10)

            thread = threading.Thread(target=other)
            thread.start()
            assert entered.wait(10)
        assert set(blas()) == {1}
        leave.set()
        thread.join()
        assert blas() == before and blas_threads() == 2


@pytest.mark.filterwarnings("ignore:.*use of fork")
def test_a_forked_process_is_not_held_by_threads_it_does_not_have():
    with threadpool_limits(2, user_api="blas"), one_blas_thread():
        child = os.fork()
        if child == 0:
            with one_blas_thread():
                inside = set(blas()) == {1}
            os._exit(0 if inside and set(blas()) == {2} else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
