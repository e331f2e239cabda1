"""Tasks shared out among processes."""

import os
import signal
import time
from concurrent.futures import BrokenExecutor

import pytest
from joblib import Parallel, delayed, parallel_config

from coolhead.lab.sweep import each_result, end_workers


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_task_has_its_result(jobs):
    assert sorted(each_result(abs, [(-n,) for n in range(8)], jobs)) == list(range(8))


def test_an_enclosing_configuration_decides_without_a_number():
    with parallel_config("threading", n_jobs=2):
        assert set(each_result(os.getpid, [()] * 3, None)) == {os.getpid()}


def test_an_error_in_any_process_is_raised():
    # A function made inside another is sent whole: workers cannot import this file.
    def refuse(number):
        raise ValueError(f"task {number}")

    with pytest.raises(ValueError, match="task"):
        list(each_result(refuse, [(n,) for n in range(4)], 2))


def test_the_death_of_a_worker_is_reported():
    def die(number):
        os._exit(3)

    with pytest.raises(BrokenExecutor):
        list(each_result(die, [(n,) for n in range(4)], 2))


def test_stopping_early_leaves_no_work_behind(tmp_path):
    def mark(number):
        time.sleep(0.2)
        (tmp_path / str(number)).touch()

    results = each_result(mark, [(n,) for n in range(40)], 2)
    next(results)
    with pytest.warns(UserWarning, match="cancelled"):
        results.close()
    seen = len(list(tmp_path.iterdir()))
    time.sleep(1)
    assert len(list(tmp_path.iterdir())) == seen < 40


def test_a_task_may_ask_joblib_for_workers():
    def ask(number):
        return number, len(
            set(Parallel(n_jobs=2)(delayed(os.getpid)() for _ in range(4)))
        )

    found = each_result(ask, [(n,) for n in range(8)], 2)
    assert sorted(found) == [(n, 1) for n in range(8)]  # the cores are shared already


def test_workers_that_died_while_they_waited_are_replaced():
    def whose(number):
        time.sleep(0.1)
        return os.getpid()

    tasks = [(n,) for n in range(20)]
    workers = set(each_result(whose, tasks, 2))
    os.kill(min(workers), signal.SIGKILL)
    time.sleep(0.5)
    assert min(workers) not in set(each_result(whose, tasks, 2))
    end_workers()
