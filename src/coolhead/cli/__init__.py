"""The command line: each command is a plain function in a file of its own.

To add a command, write a typer-annotated function and add one line to `COMMANDS`.
The files import nothing heavy at the top, so `coolhead --help` stays instant.
"""

import signal
import sys
from io import TextIOWrapper
from typing import NoReturn

import typer

from coolhead.cli import (
    apply,
    compare,
    demo,
    evaluate,
    expect,
    export,
    extract,
    fit,
    inspect,
    label,
    new_protocol,
    report,
    reproduce,
    results,
    sweep,
    train,
    update,
)
from coolhead.cli.signals import ending_on_request

COMMANDS = {
    "fit": fit.fit,
    "apply": apply.apply,
    "evaluate": evaluate.evaluate,
    "inspect": inspect.inspect,
    "expect": expect.expect,
    "label": label.label,
    "update": update.update,
    "export": export.export,
    "compare": compare.compare,
    "demo": demo.demo,
    "new-protocol": new_protocol.new_protocol,
    "sweep": sweep.sweep,
    "splits": sweep.splits,
    "tables": sweep.tables,
    "results": results.results,
    "reproduce": reproduce.reproduce,
    "report": report.report,
    "extract": extract.extract,
    "train": train.train,
}


def application() -> typer.Typer:
    """The typer application with every command of the table."""
    app = typer.Typer(
        name="coolhead",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        # Panels would cost twice the time of everything else in --help.
        rich_markup_mode=None,
    )
    for name, command in COMMANDS.items():
        app.command(name)(command)
    app.callback()(_root)
    return app


def program() -> None:
    """The program `coolhead`: once its work is over, signals end it plainly.

    Python itself would tell a late interruption with a traceback, and leave with 0.
    """
    try:
        main()
    except KeyboardInterrupt:
        raise SystemExit(128 + signal.SIGINT) from None
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def main() -> None:
    """Run the command line; a user's mistake is one sentence, not a traceback."""
    for stream in (sys.stdout, sys.stderr):
        # A locale of C has no minus sign, and a name of a file may be no text at all.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    with ending_on_request() as asked:
        try:
            _run(asked)
        except BaseException:
            if asked:
                # Whatever the request to end turned into on its way up.
                raise SystemExit(128 + asked[0]) from None
            raise


def _run(asked: list[int]) -> NoReturn:
    """Run the command named in the arguments, and leave with its code."""
    try:
        code = application()(sys.argv[1:] or ["--help"], standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        _stop("interrupted", 130)
    except MemoryError:
        _stop("not enough memory", 1)
    except Exception as error:
        # Mistakes of usage come from the parser of the command line, with their code.
        explain = getattr(error, "format_message", None)
        expected = isinstance(error, ValueError | OSError | ImportError)
        if asked or (explain is None and not expected):
            raise
        text = str(error) if explain is None else explain()
        _stop(text, getattr(error, "exit_code", 1))
    raise SystemExit(code if isinstance(code, int) else 0)


def _stop(reason: str, code: int) -> NoReturn:
    """One line on standard error, and the exit code."""
    from coolhead.cli.terminal import visible

    print(f"coolhead: {visible(' '.join(reason.split()))}", file=sys.stderr)
    raise SystemExit(code) from None


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(version("coolhead"))
        raise typer.Exit


def _root(
    trust: apply.TrustOption = None,
    version: bool = typer.Option(
        False,
        "--version",
        is_eager=True,
        callback=_print_version,
        help="Print the version and stop.",
    ),
) -> None:
    """Honest confidence for classifiers in domains they have never seen."""
    apply.TRUSTED.set(tuple(trust or ()))
