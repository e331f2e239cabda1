"""A table of numbers, and how it is written as Markdown, LaTeX or CSV.

A table is kept long: one row per cell with value, spread, interval and mark. CSV is
that frame itself; Markdown and LaTeX lay the cells out as on a page.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import polars as pl

FORMATS = {"markdown": "md", "latex": "tex", "csv": "csv"}
SCHEMA = {
    "row": pl.String,
    "column": pl.String,
    "value": pl.Float64,
    "sd": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "mark": pl.String,
}


@dataclass(frozen=True)
class Table:
    """Cells of one table; rows and columns stand in order of first appearance.

    `whole` names the columns that hold counts.
    """

    name: str
    title: str
    cells: pl.DataFrame
    notes: tuple[str, ...] = ()
    corner: str = ""
    digits: int = 2
    whole: tuple[str, ...] = ()


@dataclass
class Cells:
    """Collects the cells of a table."""

    rows: list[dict[str, Any]] = field(default_factory=list)

    def add(
        self,
        row: str,
        column: str,
        value: float | None,
        *,
        sd: float | None = None,
        low: float | None = None,
        high: float | None = None,
        mark: str = "",
    ) -> None:
        """Add one cell; a value that is None leaves the cell empty."""
        numbers = {"value": value, "sd": sd, "low": low, "high": high}
        self.rows.append({"row": row, "column": column, "mark": mark} | numbers)

    def frame(self) -> pl.DataFrame:
        """The cells as a frame."""
        return pl.DataFrame(self.rows, schema=SCHEMA)


def render_table(table: Table, form: str) -> str:
    """The text of a table in one of `FORMATS`."""
    if form not in FORMATS:
        wanted = ", ".join(FORMATS)
        raise ValueError(f"format is {form!r}; wanted one of {wanted}")
    if form == "csv":
        return table.cells.write_csv(float_precision=6).rstrip("\n")
    header, body = page_layout(table)
    return (
        _latex(table, header, body)
        if form == "latex"
        else _markdown(table, header, body)
    )


def page_layout(table: Table) -> tuple[list[str], list[list[str]]]:
    """Header and rows of formatted cells."""
    rows = _in_order(table.cells["row"])
    columns = _in_order(table.cells["column"])
    texts = {
        (cell["row"], cell["column"]): _cell_text(
            cell, 0 if cell["column"] in table.whole else table.digits
        )
        for cell in table.cells.iter_rows(named=True)
    }
    body = [
        [row, *(texts.get((row, column), "") for column in columns)] for row in rows
    ]
    return [table.corner, *columns], body


def _in_order(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _cell_text(cell: dict[str, Any], digits: int) -> str:
    if cell["value"] is None:
        return cell["mark"]
    text = f"{cell['value']:.{digits}f}"
    if cell["sd"] is not None:
        text += f" ± {cell['sd']:.{digits}f}"
    if cell["low"] is not None:
        text += f" [{cell['low']:.{digits}f}, {cell['high']:.{digits}f}]"
    return text + (cell["mark"] or "")


def _markdown(table: Table, header: list[str], body: list[list[str]]) -> str:
    def line(cells: list[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    rule = "|---|" + "---:|" * (len(header) - 1)
    lines = [f"### {table.title}", "", line(header), rule, *map(line, body)]
    notes = [f"\n{note}" for note in table.notes]
    return "\n".join(lines + notes)


_LATEX = str.maketrans(
    {"&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#", "$": r"\$", "{": r"\{", "}": r"\}"}
    | {
        "±": r"$\pm$",
        ">": r"$\rightarrow$",
        "−": "$-$",
        "*": "$^*$",
        "†": r"$^\dagger$",
    }
)


def _latex(table: Table, header: list[str], body: list[list[str]]) -> str:
    def line(cells: list[str]) -> str:
        return " & ".join(cell.translate(_LATEX) for cell in cells) + r" \\"

    caption = " ".join([table.title + ".", *table.notes]).translate(_LATEX)
    columns = "l" + "r" * (len(header) - 1)
    lines = [
        r"\begin{table}",
        rf"\caption{{{caption}}}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\hline",
        line(header),
        r"\hline",
        *map(line, body),
        r"\hline",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines)
