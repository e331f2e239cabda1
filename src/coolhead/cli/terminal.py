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

from coolhead.cli import text_width, visible, wrapped

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


def score_settings(bins: int | None, class_name: str | None, draws: int) -> dict:
    """Return the arguments that these options stand for."""
    from coolhead.metrics.bins import N_BINS

    return {"n_bins": bins or N_BINS, "class_name": class_name, "n_draws": draws}


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
    extra: Sequence[str] = (),
) -> None:
    """Print a table as wide as the terminal allows; no cell is ever shortened.

    Columns that do not fit stand below the others, beside the first column again.

    Parameters
    ----------
    columns : sequence of str
    rows : sequence of sequences of str
        The cells; those after the first column are aligned to the right.
    title : str, default=None
    notes : sequence of str, default=()
        Sentences below the table.
    extra : sequence of str, default=()
        Columns that a narrow terminal does without, the most important first.
    """
    from rich.cells import cell_len

    limit = text_width(sys.stdout) or sys.maxsize
    lines = [[visible(cell) for cell in line] for line in (columns, *rows)]
    widths = [max(map(cell_len, cells)) for cells in zip(*lines, strict=True)]

    def width(chosen: list[int]) -> int:
        return sum(widths[number] + 2 for number in chosen) - 2

    kept = [number for number, name in enumerate(columns) if name not in extra]
    left_out = []
    for number in [columns.index(name) for name in extra if name in columns]:
        if width([*kept, number]) <= limit:
            kept = sorted([*kept, number])
        else:
            left_out.append(columns[number])
    blocks = [kept[:2]]
    for number in kept[2:]:
        if width([*blocks[-1], number]) > limit:
            blocks.append([0])
        blocks[-1].append(number)
    if title is not None:
        print_text(title)
    for block in blocks:
        if title is not None or block is not blocks[0]:
            print()
        for line in lines:
            spaces = {n: " " * (widths[n] - cell_len(line[n])) for n in block}
            cells = [spaces[n] + line[n] if n else line[n] + spaces[n] for n in block]
            print("  ".join(cells).rstrip())
            if line is lines[0]:
                print("-" * width(block))
    below = list(notes)
    if left_out:
        below.append(f"Not shown at this width: {', '.join(left_out)}.")
    for number, note in enumerate(below):
        print("\n" * (number == 0), end="")
        print_text(note)


def print_text(text: Any, indent: int = 0) -> None:
    """Print prose, wrapped at words where the output is a terminal."""
    print(wrapped(visible(text), sys.stdout, indent))


def print_pairs(pairs: dict[str, Any]) -> None:
    """Names and values, one per line."""
    indent = max(map(len, pairs)) + 2
    for name, value in pairs.items():
        line = f"{visible(name):<{indent}}{visible(shown(value))}"
        print(wrapped(line, sys.stdout, indent))


def plain_name(key: str) -> str:
    """Return the words of a key, as in "rows" of "n_rows"."""
    return key.removeprefix("n_").replace("_", " ")


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
    """Print each distinct warning once on standard error, without source code."""
    printed: set[str] = set()

    def show(message: Warning | str, *_: Any) -> None:
        text = " ".join(str(message).split())
        if text not in printed:
            printed.add(text)
            line = f"coolhead: warning: {visible(text)}"
            print(wrapped(line, sys.stderr), file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = show  # at once, since hours of work may follow
        yield


def in_percent(interval: Any) -> str:
    """An interval of ECE as '5.1 [4.0, 6.3]', in percent."""
    low, high = 100 * interval.low, 100 * interval.high
    return f"{100 * interval.estimate:.1f} [{low:.1f}, {high:.1f}]"
