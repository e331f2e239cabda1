"""Passes on several threads: the same bits, the same errors, never too many threads."""

import multiprocessing
import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import coolhead as ch
from coolhead.numerics import blocks as threads
from coolhead.numerics.blocks import WORTHWHILE, each_block, thread_count
from coolhead.numerics.softmax import confidence, score_rows, softmax

ROWS, COLUMNS = 1500, 700


@pytest.fixture(params=[np.float32, np.float64])
def problem(request):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, COLUMNS, ROWS)
    logits = rng.normal(size=(ROWS, COLUMNS))
    logits[np.arange(ROWS), labels] += rng.normal(3, 2, ROWS)
    return logits.astype(request.param), labels


def everything(logits, labels):
    fit = ch.fit_temperature(logits, labels)
    return (
        np.array([fit.temperature, fit.nll, fit.log_temperature_se]),
        softmax(logits, 1.7),
        *confidence(logits, 1.7),
        *score_rows(logits, labels, 1.7),
    )


def test_results_have_the_same_bits_on_any_number_of_threads(problem, monkeypatch):
    found = []
    for count in (1, 2, 5):
        monkeypatch.setattr(threads, "thread_count", lambda _, count=count: count)
        found.append(everything(*problem))
    for other in found[1:]:
        for first, second in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(first, second)


def test_all_rows_are_visited_once_and_by_several_threads(monkeypatch):
    monkeypatch.setattr(threads, "thread_count", lambda _: 3)
    meeting, seen, visits = threading.Barrier(3, timeout=20), set(), np.zeros(2**14)

    def work(rows, scratch):
        visits[rows] += 1
        if threading.get_ident() not in seen:
            seen.add(threading.get_ident())
            meeting.wait()

    each_block((2**14, 128), work)
    assert len(seen) == 3 and (visits == 1).all()


def test_of_several_errors_the_first_row_decides(problem, monkeypatch):
    logits, labels = problem
    monkeypatch.setattr(threads, "thread_count", lambda _: 4)
    logits[[300, 900, 1400]] = np.nan
    with pytest.raises(ValueError, match="row 300"):
        softmax(logits, 1.0)
    with pytest.raises(ValueError, match="row 300"):
        ch.fit_temperature(logits, labels)


def test_numpys_error_state_reaches_the_threads(monkeypatch):
    monkeypatch.setattr(threads, "thread_count", lambda _: 2)
    found = []
    with np.errstate(divide="raise"):
        each_block((2**14, 64), lambda rows, _: found.append(np.geterr()["divide"]))
    assert set(found) == {"raise"}


def test_limits_of_openmp_hold():
    with threadpool_limits(1):
        assert thread_count(2 * WORTHWHILE) == 1
    with threadpool_limits(3, user_api="openmp"):
        assert thread_count(2 * WORTHWHILE) == 3


def test_small_passes_and_other_peoples_threads_stay_on_one(monkeypatch):
    with threadpool_limits(8, user_api="openmp"):
        assert thread_count(2 * WORTHWHILE) == 8
        assert thread_count(WORTHWHILE - 1) == 1
        found = []
        thread = threading.Thread(target=lambda: found.append(thread_count(2**30)))
        thread.start()
        thread.join()
        monkeypatch.setattr(multiprocessing, "parent_process", object)
        assert found == [1] and thread_count(2**30) == 1
