"""Tasks shared out among this process and others."""

import os
import signal
import time
from concurrent.futures import BrokenExecutor

import pytest
from joblib import Parallel, delayed
from joblib.externals.loky import ProcessPoolExecutor

from coolhead.lab.sweep import each_result, end_workers


def test_this_process_works_while_the_other_starts():
    # A function made inside another is sent whole: workers cannot import this file.
    def nap(number):
        time.sleep(0.2)
        return number, os.getpid()

    found = list(each_result(nap, [(n,) for n in range(30)], 2))
    assert sorted(n for n, _ in found) == list(range(30))
    workers = {process for _, process in found}
    assert os.getpid() in workers
    assert len(workers) == 2


@pytest.mark.parametrize("jobs", [1, 2, -1])
def test_one_task_needs_no_other_process(jobs):
    here = os.getpid()
    assert list(each_result(os.getpid, [()], jobs)) == [here]


def test_an_error_in_any_process_is_raised():
    def refuse(number):
        raise ValueError(f"task {number}")

    with pytest.raises(ValueError, match="task"):
        list(each_result(refuse, [(n,) for n in range(4)], 2))


def test_the_death_of_a_worker_is_told():
    here = os.getpid()

    def die(number):
        if os.getpid() != here:
            os._exit(3)
        time.sleep(0.3)

    with pytest.raises(BrokenExecutor):
        list(each_result(die, [(n,) for n in range(40)], 2))


def test_whoever_stops_early_leaves_no_work_behind(tmp_path):
    def mark(number):
        time.sleep(0.2)
        (tmp_path / str(number)).touch()

    results = each_result(mark, [(n,) for n in range(40)], 2)
    next(results)
    results.close()
    seen = len(list(tmp_path.iterdir()))
    time.sleep(1)
    assert len(list(tmp_path.iterdir())) == seen < 40


def test_joblib_has_workers_of_its_own():
    def number(given):
        return given

    wanted = list(range(4))
    for _ in range(2):
        found = each_result(number, [(n,) for n in wanted], 2)
        assert sorted(found) == wanted
        assert Parallel(n_jobs=2)(delayed(number)(n) for n in wanted) == wanted


def test_a_task_may_ask_joblib_for_workers():
    def ask(number):
        return number, len(
            set(Parallel(n_jobs=2)(delayed(os.getpid)() for _ in range(4)))
        )

    found = each_result(ask, [(n,) for n in range(8)], 2)
    assert sorted(found) == [(n, 1) for n in range(8)]  # the cores are shared already


def test_workers_that_died_before_they_had_a_task_are_told(monkeypatch):
    def refuse(self, *given):
        raise BrokenExecutor("a worker died")

    end_workers()
    monkeypatch.setattr(ProcessPoolExecutor, "submit", refuse)
    with pytest.raises(BrokenExecutor):
        list(each_result(abs, [(n,) for n in range(3)], 2))


def test_workers_that_died_while_they_waited_are_replaced():
    def whose(number):
        time.sleep(0.1)
        return os.getpid()

    tasks = [(n,) for n in range(20)]
    (worker,) = set(each_result(whose, tasks, 2)) - {os.getpid()}
    os.kill(worker, signal.SIGKILL)
    time.sleep(0.5)
    (other,) = set(each_result(whose, tasks, 2)) - {os.getpid()}
    assert other != worker
