"""The command line inside this process."""

from command_line import run  # noqa: F401
