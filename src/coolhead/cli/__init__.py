"""The command line: each command is a plain function in a file of its own.

To add a command, write a typer-annotated function and add one line to `COMMANDS`.
The files import nothing heavy at the top, so `coolhead --help` stays instant.
"""

import sys
from importlib import import_module

import typer

COMMANDS = {
    "demo": "coolhead.cli.demo:demo",
    "sweep": "coolhead.cli.sweep:sweep",
    "splits": "coolhead.cli.sweep:splits",
    "tables": "coolhead.cli.sweep:tables",
    "results": "coolhead.cli.results:results",
}


def application() -> typer.Typer:
    """The typer application with every command of the table."""
    app = typer.Typer(
        name="coolhead",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
    )
    for name, place in COMMANDS.items():
        module, function = place.split(":")
        app.command(name)(getattr(import_module(module), function))
    app.callback()(_root)
    return app


def main() -> None:
    """Run the command line; a user's mistake is one sentence, not a traceback."""
    try:
        application()()
    except (ValueError, OSError, ImportError) as error:
        print(f"coolhead: {error}", file=sys.stderr)
        raise SystemExit(1) from None


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(version("coolhead"))
        raise typer.Exit


def _root(
    version: bool = typer.Option(
        False,
        "--version",
        is_eager=True,
        callback=_print_version,
        help="Print the version and stop.",
    ),
) -> None:
    """Honest confidence for classifiers in domains they have never seen."""
