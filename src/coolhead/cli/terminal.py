"""What the commands share: JSON, tables, warnings in one line."""

import json
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from coolhead.cli import visible

# Names given with --trust, before the name of the command.
TRUSTED: ContextVar[tuple[str, ...]] = ContextVar("TRUSTED", default=())
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


class InputKind(StrEnum):
    """What the file of predictions holds."""

    LOGITS = "logits"
    PROBABILITIES = "probabilities"


FolderOption = Annotated[Path, typer.Option(help="Folder that holds the runs.")]
JobsOption = Annotated[
    int | None, typer.Option(min=1, help="Worker processes; all cores by default.")
]
SeedsOption = Annotated[
    str | None, typer.Option(help="Seeds in place of the file's: 0,1,2.")
]
SettingsOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="Any other key of the file: evaluation.draws=200."),
]
BinsOption = Annotated[
    int | None, typer.Option(min=1, max=1000, help="Bins of the errors; 15 by default.")
]
ClassOption = Annotated[
    str | None, typer.Option("--class", help="A class whose own ECE is wanted.")
]
DrawsOption = Annotated[int, typer.Option(min=10, help="Bootstrap resamples.")]
InputOption = Annotated[
    InputKind | None, typer.Option("--input", help="What the scores in the file are.")
]


def print_json(content: Any) -> None:
    """One JSON document; NaN and infinity, which JSON lacks, become null."""
    print(json.dumps(_plain(content), ensure_ascii=False, allow_nan=False))


def _plain(value: Any) -> Any:
    """Named tuples, arrays and numbers of NumPy as JSON values."""
    if hasattr(value, "_asdict"):
        return _plain(value._asdict())
    if hasattr(value, "__dataclass_fields__"):
        return {name: _plain(getattr(value, name)) for name in value.__match_args__}
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not abs(value) < float("inf"):
        return None
    return value


def print_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    title: str | None = None,
    notes: Sequence[str] = (),
) -> None:
    """A table with right-aligned columns after the first, and notes below it."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    def plain(text: str) -> Text:
        return Text(visible(text))

    heading = None if title is None else plain(title)
    table = Table(box=SIMPLE_HEAD, title=heading, title_justify="left", pad_edge=False)
    for number, name in enumerate(columns):
        side = "right" if number else "left"
        table.add_column(plain(name), justify=side, no_wrap=True)
    for row in rows:
        table.add_row(*map(plain, row))
    # A pipe or a file gets whole lines, however long.
    wide = None if sys.stdout.isatty() else 10_000
    Console(width=wide, markup=False, highlight=False).print(table)
    for note in notes:
        print(visible(note))


def print_pairs(pairs: dict[str, Any]) -> None:
    """Names and values, one per line."""
    width = max(len(name) for name in pairs)
    for name, value in pairs.items():
        print(f"{visible(name):<{width}}  {visible(shown(value))}")


def shown(value: Any) -> str:
    """Numbers in four digits, also inside of lists, arrays and dictionaries."""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        return ", ".join(f"{key} {shown(item)}" for key, item in value.items())
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return "; ".join(shown(item) for item in value)
    return str(value)


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Warnings become one line each on standard error, without source code."""
    told: set[str] = set()

    def tell(message: Warning | str, *_: Any) -> None:
        text = " ".join(str(message).split())
        if text not in told:
            told.add(text)
            print(f"coolhead: warning: {visible(text)}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = tell  # at once, since hours of work may follow
        yield


def in_percent(interval: Any) -> str:
    """An interval of ECE as '5.1 [4.0, 6.3]', in percent."""
    low, high = 100 * interval.low, 100 * interval.high
    return f"{100 * interval.estimate:.1f} [{low:.1f}, {high:.1f}]"
