"""Tasks shared out among this process and others."""

import os
import time
from concurrent.futures import BrokenExecutor

import pytest

from coolhead.experiment.workers import each_result


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
