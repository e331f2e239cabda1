"""The command line as a program, and inside another one.

Nothing heavy is imported here, typer included: signals are handled before that.
"""

import signal
import sys
from io import TextIOWrapper
from typing import Any, NoReturn

from coolhead.cli.signals import Requests, ending_on_request
from coolhead.extras import needs


def program() -> NoReturn:
    """Run the command line as a process of its own, which signals end plainly.

    From the first line on, SIGINT, SIGTERM and SIGHUP give the exit code 128 + number,
    also while libraries are imported and while Python shuts down.
    """
    requests = Requests()
    requests.handle(to_the_end=True)
    try:
        _run(requests)
    finally:
        requests.leave()


def main() -> NoReturn:
    """Run the command line; a user's mistake is one sentence, not a traceback.

    The handlers of signals are set back afterwards.
    """
    with ending_on_request() as requests:
        _run(requests)


def _run(requests: Requests) -> NoReturn:
    """Run the command of the arguments, and leave with its code or that of a signal."""
    try:
        _dispatch(requests)
    except BaseException:
        if requests.received:
            # Libraries may have turned the request to end into any other error.
            raise SystemExit(requests.exit_code) from None
        raise


def _dispatch(requests: Requests) -> NoReturn:
    for stream in (sys.stdout, sys.stderr):
        # A locale of C has no minus sign, and a name of a file may be no text at all.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        with needs("this command"):
            import typer

            from coolhead.cli import commands
    except ModuleNotFoundError as error:
        _stop(str(error), 1)
    try:
        app = commands.application()
        with needs("this command"):
            code = app(sys.argv[1:] or ["--help"], standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        if requests.received:
            raise
        # polars takes some SIGINTs for itself and raises this instead. It is a request
        # like any other: Python's shutdown would abort beside the threads of polars.
        requests.received.append(signal.SIGINT)
        _stop("interrupted", 130)
    except MemoryError:
        _stop("not enough memory", 1)
    except Exception as error:
        # Mistakes of usage come from the parser of the command line, with their code.
        explain = getattr(error, "format_message", None)
        expected = isinstance(error, ValueError | OSError | ImportError)
        if requests.received or (explain is None and not expected):
            raise
        text = str(error) if explain is None else explain()
        _stop(text, getattr(error, "exit_code", 1))
    raise SystemExit(code if isinstance(code, int) else 0)


def _stop(reason: str, code: int) -> NoReturn:
    """Print one line on standard error, and leave with the exit code."""
    line = f"coolhead: {visible(' '.join(reason.split()))}"
    print(wrapped(line, sys.stderr), file=sys.stderr)
    raise SystemExit(code) from None


def visible(text: Any) -> str:
    """Spell out what is not printable: text that cannot command the terminal."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(text))


def text_width(stream: Any) -> int | None:
    """Return the columns of a terminal; None of others, which get whole lines."""
    if not stream.isatty():
        return None
    from shutil import get_terminal_size

    return get_terminal_size().columns


def wrapped(text: str, stream: Any, indent: int = 0) -> str:
    """Wrap a line at its words where the stream is a terminal."""
    width = text_width(stream)
    if width is None or len(text) <= width:
        return text
    from textwrap import fill

    return fill(
        text,
        max(width, indent + 20),
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
