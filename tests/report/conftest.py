"""Runs to report on."""

import pytest
from synthetic_run import write_run

from command_line import npz, predictions  # noqa: F401
from command_line import run as command  # noqa: F401

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """Six splits of three domains, one of them with a hostile name."""
    folder = tmp_path_factory.mktemp("runs") / "made"
    return write_run(folder, ("amazon", HOSTILE, "写真 $x_{"), pictures=True)


@pytest.fixture(scope="session")
def page(made):
    """The text of its report."""
    from coolhead.lab.report import write_report

    return write_report(made).read_text(encoding="utf-8")
