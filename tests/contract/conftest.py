from command_line import run  # noqa: F401
