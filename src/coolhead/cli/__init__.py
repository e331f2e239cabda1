"""The command line: each command is a plain function in a file of its own.

To add a command, write a typer-annotated function and add one line to `COMMANDS`.
The files import nothing heavy at the top, so `coolhead --help` stays instant.
"""

import sys
from importlib import import_module
from typing import NoReturn

import typer

COMMANDS = {
    "fit": "coolhead.cli.fit:fit",
    "apply": "coolhead.cli.apply:apply",
    "evaluate": "coolhead.cli.evaluate:evaluate",
    "inspect": "coolhead.cli.inspect:inspect",
    "expect": "coolhead.cli.expect:expect",
    "label": "coolhead.cli.label:label",
    "update": "coolhead.cli.update:update",
    "export": "coolhead.cli.export:export",
    "compare": "coolhead.cli.compare:compare",
    "demo": "coolhead.cli.demo:demo",
    "sweep": "coolhead.cli.sweep:sweep",
    "splits": "coolhead.cli.sweep:splits",
    "tables": "coolhead.cli.sweep:tables",
    "results": "coolhead.cli.results:results",
    "report": "coolhead.cli.report:report",
    "extract": "coolhead.cli.extract:extract",
    "train": "coolhead.cli.train:train",
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
        code = application()(sys.argv[1:] or ["--help"], standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        _stop("interrupted", 130)
    except MemoryError:
        _stop("not enough memory", 1)
    except Exception as error:
        # Mistakes of usage come from the parser of the command line, with their code.
        explain = getattr(error, "format_message", None)
        if explain is None and not isinstance(
            error, ValueError | OSError | ImportError
        ):
            raise
        text = str(error) if explain is None else explain()
        _stop(text, getattr(error, "exit_code", 1))
    else:
        raise SystemExit(code if isinstance(code, int) else 0)


def _stop(reason: str, code: int) -> NoReturn:
    """One line on standard error, and the exit code."""
    print(f"coolhead: {' '.join(reason.split())}", file=sys.stderr)
    raise SystemExit(code) from None


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
