"""A table of numbers, and how it is written as Markdown, LaTeX or CSV.

A table is kept long: one row per cell with value, spread, interval and mark. CSV is
that frame itself; Markdown and LaTeX lay the cells out as on a page.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from coolhead.archive.formulas import without_formulas
from coolhead.experiment.results import file_safe

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

    `whole` names the columns that hold counts, `bold` the cells (row, column) that
    are the best of their kind.
    """

    name: str
    title: str
    cells: pl.DataFrame
    notes: tuple[str, ...] = ()
    corner: str = ""
    digits: int = 2
    whole: tuple[str, ...] = ()
    bold: frozenset[tuple[str, str]] = frozenset()


@dataclass
class TableBuilder:
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


def best_cells(
    cells: pl.DataFrame,
    columns: Iterable[str],
    *,
    among: Iterable[str],
    along: str = "column",
    highest: bool = False,
) -> frozenset[tuple[str, str]]:
    """The best cell of every column (or, along="row", of every row).

    `columns` compete, or are competed in; `among` are the names of the rows (or, along
    rows, of the columns) that take part: methods, not oracles.
    """
    other = "column" if along == "row" else "row"
    taking = pl.col(along).is_in(list(columns)) & pl.col(other).is_in(list(among))
    own = cells.filter(taking, pl.col("value").is_not_null())
    edge = pl.col("value").max() if highest else pl.col("value").min()
    found = own.filter(pl.col("value") == edge.over(along))
    return frozenset(found.select("row", "column").iter_rows())


def render_table(table: Table, form: str) -> str:
    """The text of a table in one of `FORMATS`."""
    if form not in FORMATS:
        wanted = ", ".join(FORMATS)
        raise ValueError(f"format is {form!r}; wanted one of {wanted}")
    if form == "csv":
        return without_formulas(table.cells).write_csv(float_precision=6).rstrip("\n")
    write = _latex if form == "latex" else _markdown
    return write(table, *page_layout(table))


def page_layout(table: Table) -> tuple[list[str], list[list[str]]]:
    """Header and rows of formatted cells."""
    rows, columns = (dict.fromkeys(table.cells[name]) for name in ("row", "column"))
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
    {
        "\\": r"\textbackslash{}",
        "&": r"\&",
        "%": r"\%",
        "_": r"\_",
        "#": r"\#",
        "$": r"\$",
        "{": r"\{",
        "}": r"\}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "±": r"$\pm$",
        "<": "$<$",
        ">": r"$\rightarrow$",
        "−": "$-$",
        "*": "$^*$",
        "†": r"$^\dagger$",
        "σ": r"$\sigma$",
        "²": "$^2$",
        "₂": "$_2$",
    }
)


def _escaped(text: str) -> str:
    """Text for LaTeX: "a > b" is a way from a to b, "> 1" a comparison."""
    return re.sub(r"\$\\rightarrow\$(?= ?\d)", "$>$", text.translate(_LATEX))


def _latex(table: Table, header: list[str], body: list[list[str]]) -> str:
    """A table for the package booktabs; `bold` cells are the best of their kind."""

    def line(cells: list[str]) -> str:
        return " & ".join(cells) + r" \\"

    def cell(row: str, column: str, text: str) -> str:
        escaped = _escaped(text)
        return rf"\textbf{{{escaped}}}" if (row, column) in table.bold else escaped

    lines = [
        line([cell(row[0], name, text) for name, text in zip(header, row, strict=True)])
        for row in body
    ]
    caption = _escaped(" ".join([table.title + ".", *table.notes]))
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{caption}}}",
            rf"\label{{tab:{file_safe(table.name)}}}",
            rf"\begin{{tabular}}{{l{'r' * (len(header) - 1)}}}",
            r"\toprule",
            line([_escaped(name) for name in header]),
            r"\midrule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
    )
