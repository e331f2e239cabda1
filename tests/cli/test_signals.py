"""Requests to end at an odd moment, and terminals that lack letters."""

import os
import signal
import subprocess
import sys

import pytest

# Starting Python takes half a minute on a machine that is busy enough. No program here
# ends by itself unless it ignores the signal, so a long wait loses nothing.
PATIENCE = 300

# The signal comes inside a callback, in which Python drops whatever is raised.
IN_CALLBACK = """
import os, sys, time, weakref
import coolhead.cli.commands

class Thing: pass

def work(words, **options):
    thing = Thing()
    reference = weakref.ref(thing, lambda _: os.kill(os.getpid(), int(words[0])))
    del thing
    time.sleep(3600)
    print("to the end")

coolhead.cli.commands.application = lambda: work
coolhead.cli.program()
"""


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)]
)
def test_dropped_by_a_callback(number, code):
    words = [sys.executable, "-c", IN_CALLBACK, str(int(number))]
    found = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE)
    assert found.returncode == code
    assert "Traceback" not in found.stderr and "to the end" not in found.stdout


# Each gets a signal at one moment, in a process of its own.
DURING_IMPORTS = """
import os, sys

class Finder:
    def find_spec(name, *rest):
        if name == "typer":
            os.kill(os.getpid(), int(sys.argv[1]))

sys.meta_path.insert(0, Finder)
from coolhead.cli import program
program()
"""
WHILE_CLEARING_AWAY = """
import os, pathlib, signal, sys
import coolhead.cli.commands
from coolhead.io.files import atomic_path

unlink = pathlib.Path.unlink

def unlink_and_ask(path):
    for number in (signal.SIGTERM, signal.SIGINT):
        os.kill(os.getpid(), number)
    unlink(path)

def work(words, **options):
    pathlib.Path.unlink = unlink_and_ask
    with atomic_path(words[1]):
        os.kill(os.getpid(), int(words[0]))

coolhead.cli.commands.application = lambda: work
coolhead.cli.program()
"""
IN_AN_EXIT_FUNCTION = """
import atexit, os
import coolhead.cli.commands

def work(words, **options):
    atexit.register(os.kill, os.getpid(), int(words[0]))

coolhead.cli.commands.application = lambda: work
coolhead.cli.program()
"""
DROPPED_BY_A_LIBRARY = """
import os
import coolhead.cli.commands

def work(words, **options):
    try:
        os.kill(os.getpid(), int(words[0]))
    except BaseException:
        raise ImportError("numpy._core.multiarray failed to import")

coolhead.cli.commands.application = lambda: work
coolhead.cli.program()
"""
MOMENTS = [DURING_IMPORTS, WHILE_CLEARING_AWAY]
MOMENTS += [IN_AN_EXIT_FUNCTION, DROPPED_BY_A_LIBRARY]


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
)
@pytest.mark.parametrize("program", MOMENTS, ids=range(len(MOMENTS)))
def test_moments_of_a_signal(program, number, code, tmp_path):
    # Tests that were started by nohup hand down that SIGHUP is ignored.
    heard = "import signal; signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"
    words = [sys.executable, "-c", heard + program, str(int(number))]
    found = subprocess.run(
        [*words, tmp_path / "out"], capture_output=True, text=True, timeout=PATIENCE
    )
    assert found.returncode == code, found.stderr
    assert "Traceback" not in found.stderr and found.stderr.count("\n") <= 1
    assert not list(tmp_path.iterdir())


WHILE_POLARS_WRITES = """
import itertools, os, time
import numpy as np
import coolhead.cli.commands
from coolhead.io.write import Written, write_blocks

def blocks(number):
    for block in itertools.count():
        yield Written(np.full((1000, 2), 0.5), {})
        time.sleep(0.05)
        if block == 3:
            os.kill(os.getpid(), number)

coolhead.cli.commands.application = lambda: (
    lambda words, **options: write_blocks(blocks(int(words[0])), words[1])
)
coolhead.cli.program()
"""


@pytest.mark.parametrize("ending", ["parquet", "arrow", "csv", "npy"])
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)]
)
def test_a_signal_while_polars_writes(number, code, ending, tmp_path):
    words = [sys.executable, "-c", WHILE_POLARS_WRITES, str(int(number))]
    # There is no last block: it must not wait for the rest of them.
    found = subprocess.run(
        [*words, tmp_path / f"o.{ending}"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert found.returncode == code, found.stderr
    assert "Traceback" not in found.stderr and not list(tmp_path.iterdir())


# The system may hand a signal to any thread; main's wait is then not interrupted.
ON_ANOTHER_THREAD = WHILE_POLARS_WRITES.replace(
    "os.kill(os.getpid(), number)",
    "signal.pthread_kill(threading.get_ident(), number)",
).replace("os, time\n", "os, signal, threading, time\n")


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)]
)
def test_a_signal_that_another_thread_receives(number, code, tmp_path):
    words = [sys.executable, "-c", ON_ANOTHER_THREAD, str(int(number))]
    found = subprocess.run(
        [*words, tmp_path / "o.arrow"], capture_output=True, text=True, timeout=PATIENCE
    )
    assert found.returncode == code, found.stderr
    assert "Traceback" not in found.stderr and not list(tmp_path.iterdir())


# A handler may raise between any two steps of the main thread, inside a wait too.
AT_ANY_STEP = """
import sys
import numpy as np
from coolhead.io import write
from coolhead.io.write import Written, write_blocks

write.SECONDS_TO_STOP = 1.0
WAITING = "io/write.py", "threading.py", "queue.py", "thread.py", "_base.py"


def interrupted_at(step):
    left = [step]

    def trace(frame, event, argument):
        if not frame.f_code.co_filename.endswith(WAITING):
            return None
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt
        return trace

    blocks = (Written(np.full((10, 2), 0.5), {}) for _ in range(3))
    sys.settrace(trace)
    try:
        write_blocks(blocks, sys.argv[1])
    except BaseException:  # a wait may turn it into another error
        return True
    finally:
        sys.settrace(None)
    return False


step = 1
while interrupted_at(step):
    step += 1
print(step)
"""


@pytest.mark.parametrize("ending", ["arrow", "parquet"])
def test_an_interrupt_at_any_step_of_the_wait(ending, tmp_path):
    words = [sys.executable, "-c", AT_ANY_STEP, tmp_path / f"o.{ending}"]
    found = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE)
    assert found.returncode == 0, found.stderr
    assert int(found.stdout) > 30 and len(list(tmp_path.iterdir())) == 1


# polars takes some SIGINTs for itself; its threads must not meet Python's shutdown.
AN_INTERRUPT_OF_A_LIBRARY = """
import sys
import coolhead.cli.commands

class Last:
    def __del__(self, write=sys.stderr.write):
        write("shutdown")

def work(words, **options):
    raise KeyboardInterrupt

sys.last = Last()
coolhead.cli.commands.application = lambda: work
coolhead.cli.program()
"""


def test_an_interrupt_that_a_library_raises():
    words = [sys.executable, "-c", AN_INTERRUPT_OF_A_LIBRARY, "x"]
    found = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE)
    assert (found.returncode, found.stderr) == (130, "coolhead: interrupted\n")


WHILE_PYTHON_FREES_MODULES = """
import os, sys
import coolhead.cli.commands

class Last:
    def __del__(self, kill=os.kill, words=(os.getpid(), int(sys.argv[1]))):
        kill(*words)

sys.last = Last()
coolhead.cli.commands.application = lambda: lambda words, **options: 3
coolhead.cli.program()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_too_late_to_matter(number):
    words = [sys.executable, "-c", WHILE_PYTHON_FREES_MODULES, str(int(number))]
    found = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE)
    assert (found.returncode, found.stderr) == (3, "")


def test_ignored_signals_stay_ignored():
    program = (
        "import os, signal, coolhead.cli.commands\n"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "work = lambda *words, **options: os.kill(os.getpid(), signal.SIGHUP)\n"
        "coolhead.cli.commands.application = lambda: work\n"
        "coolhead.cli.program()"
    )
    words = [sys.executable, "-c", program, "x"]
    found = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE)
    assert (found.returncode, found.stderr) == (0, "")


def test_letters_that_the_terminal_lacks():
    program = (
        "import coolhead.cli.commands\n"
        "work = lambda *words, **options: print('\\u22121 \\udcff')\n"
        "coolhead.cli.commands.application = lambda: work\n"
        "coolhead.cli.program()"
    )
    odd = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    found = subprocess.run(
        [sys.executable, "-c", program, "x"],
        capture_output=True,
        text=True,
        env=os.environ | odd,
    )
    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout == "\\u22121 \\udcff\n"
