from command_line import npz, predictions, run  # noqa: F401
