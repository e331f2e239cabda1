"""Run the command line with `python -m coolhead`."""

from coolhead.cli import program

if __name__ == "__main__":
    program()
