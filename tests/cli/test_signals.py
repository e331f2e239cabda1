"""Requests to end at an odd moment, and terminals that lack letters."""

import os
import signal
import subprocess
import sys

import pytest

# The signal comes inside a callback, in which Python drops whatever is raised.
IN_CALLBACK = """
import os, sys, time, weakref
import coolhead.cli

class Thing: pass

def work(words, **options):
    thing = Thing()
    reference = weakref.ref(thing, lambda _: os.kill(os.getpid(), int(words[0])))
    del thing
    time.sleep(20)
    print("to the end")

coolhead.cli.application = lambda: work
coolhead.cli.program()
"""


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)]
)
def test_dropped_by_a_callback(number, code):
    words = [sys.executable, "-c", IN_CALLBACK, str(int(number))]
    found = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert found.returncode == code
    assert "Traceback" not in found.stderr and "to the end" not in found.stdout


def test_letters_that_the_terminal_lacks():
    program = (
        "import coolhead.cli\n"
        "coolhead.cli.application = lambda: lambda *a, **b: print('\\u22121 \\udcff')\n"
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
