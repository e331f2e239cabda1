"""Tables of numbers, and their text as Markdown, LaTeX or CSV.

A table has one row per cell, with value, spread, interval and mark. CSV is that frame
itself; Markdown and LaTeX lay the cells out as on a page.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from coolhead.io.write import csv_text
from coolhead.methods import METHODS, known_method
from coolhead.report.results import KEY_COLUMNS, file_safe

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
    """Cells of one table; rows and columns are in order of first appearance.

    Attributes
    ----------
    name, title : str
    cells : DataFrame
        With the columns of `SCHEMA`.
    notes : tuple of str
    corner : str
        Head of the column of row names.
    digits : int
    whole : tuple of str
        Columns that hold counts.
    bold : frozenset of (row, column)
        Cells that are the best of their kind.
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
        mark: str = "",
        **spread: float | None,
    ) -> None:
        """Add one cell; None leaves it empty, `spread` may hold sd, or low and high."""
        cell = dict.fromkeys(SCHEMA) | {"row": row, "column": column, "value": value}
        self.rows.append(cell | {"mark": mark} | spread)

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
    """Return the best cell of every column (or, along="row", of every row).

    Parameters
    ----------
    cells : DataFrame
    columns : iterable of str
        Columns (or rows) to find the best cell of.
    among : iterable of str
        Rows (or columns) that take part: methods, not oracles.
    along : {"column", "row"}, default="column"
    highest : bool, default=False
    """
    other = "column" if along == "row" else "row"
    taking = pl.col(along).is_in(list(columns)) & pl.col(other).is_in(list(among))
    own = cells.filter(taking, pl.col("value").is_not_null())
    edge = pl.col("value").max() if highest else pl.col("value").min()
    found = own.filter(pl.col("value") == edge.over(along))
    return frozenset(found.select("row", "column").iter_rows())


def render_table(table: Table, form: str) -> str:
    """Return the text of a table in one of `FORMATS`."""
    if form not in FORMATS:
        wanted = ", ".join(FORMATS)
        raise ValueError(f"format is {form!r}; wanted one of {wanted}")
    if form == "csv":
        return csv_text(table.cells, float_precision=6).rstrip("\n")
    write = _latex if form == "latex" else _markdown
    return write(table, *page_layout(table))


def page_layout(table: Table) -> tuple[list[str], list[list[str]]]:
    """Return the header and rows of formatted cells."""
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
        **{character: f"\\{character}" for character in "&%_#${}"},
        "\\": r"\textbackslash{}",
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
    """Escape text for LaTeX: "a > b" is an arrow from a to b, "> 1" a comparison."""
    return re.sub(r"\$\\rightarrow\$(?= ?\d)", "$>$", text.translate(_LATEX))


def _latex(table: Table, header: list[str], body: list[list[str]]) -> str:
    """Write a table for the package booktabs; `bold` cells are bold."""

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


BASELINES = ("uncalibrated", "source-only", "target-only", "target-ece-oracle")


@dataclass(frozen=True)
class RunScores:
    """One row per split, seed and method; one column per metric; errors in per cent."""

    frame: pl.DataFrame
    # Tables ask for the same parts of the frame thousands of times: a cache.
    _parts: dict = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def methods(self) -> list[str]:
        """Methods in the order of the table of methods."""
        present = set(self.frame["method"])
        known = [name for name in METHODS if name in present]
        return known + sorted(present - set(known), key=_by_number)

    @property
    def targets(self) -> list[str]:
        """Targets in the order of the protocol."""
        return list(dict.fromkeys(self.frame["target"]))

    @property
    def splits(self) -> list[str]:
        """Names of the splits in the order of the protocol."""
        return list(dict.fromkeys(self.frame["split"]))

    @property
    def seeds(self) -> list[int]:
        """Seeds of the run."""
        return list(dict.fromkeys(self.frame["seed"]))

    def of(self, method: str, **where: str) -> pl.DataFrame:
        """Rows of a method, with the given values of `target` or `split`."""
        keys = ("method", *where)
        parts = self._once(keys, lambda: self.frame.partition_by(keys, as_dict=True))
        return parts.get((method, *where.values()), self.frame.clear())

    def paired(self, method: str, baseline: str) -> pl.DataFrame:
        """Rows of a method beside those of a baseline (columns ending in ``_base``)."""
        keys = ["split", "calibration", "target", "seed"]
        return self._once(
            ("paired", method, baseline),
            lambda: self.of(method).join(
                self.of(baseline), on=keys, suffix="_base", maintain_order="left"
            ),
        )

    def paired_in(self, split: str, method: str, baseline: str) -> list[dict]:
        """The rows of one split among those, as dictionaries."""
        by_split = self._once(
            ("paired in", method, baseline),
            lambda: self.paired(method, baseline).rows_by_key("split", named=True),
        )
        return by_split.get(split, [])

    def _once(self, key: tuple[str, ...], make: Callable[[], Any]) -> Any:
        if key not in self._parts:
            self._parts[key] = make()
        return self._parts[key]


def split_means(scores: RunScores, method: str) -> np.ndarray:
    """ECE of each split, averaged over the seeds, (n_splits,); NaN where missing."""
    means = scores.of(method).group_by("split").agg(pl.col("ece_mean").mean())
    by_split = dict(means.iter_rows())
    # A null becomes NaN like a split that is not there.
    return np.array([by_split.get(split) for split in scores.splits], float)


def column_mean(frame: pl.DataFrame, column: str) -> float | None:
    """Mean of a column as a number; None if there is nothing to average."""
    if column not in frame.columns:
        return None
    values = frame[column].drop_nulls().to_numpy()
    return float(values.mean()) if values.size else None


def seed_deviation(frame: pl.DataFrame, column: str) -> float | None:
    """Standard deviation over the seeds of the mean of a column; None of one seed."""
    if column not in frame.columns:
        return None
    means = frame.group_by("seed").agg(pl.col(column).mean())[column].drop_nulls()
    return float(means.to_numpy().std(ddof=1)) if len(means) > 1 else None


def label(method: str) -> str:
    """Return the name of a method in tables."""
    return known_method(method).label


# The paper's names of methods in plain words.
PLAIN_NAMES = {
    "uncalibrated": "the confidence of the classifier itself",
    "source-only": "one temperature, from held-out rows of the training domain",
    "target-only": "one temperature, from all labels of the target: a bound",
    "target-ece-oracle": "the temperature of lowest ECE on the target: a bound",
    "set-level": "one temperature for all calibration domains",
    "nearest-cluster": "the temperature of the nearest cluster of features",
    "regression": "a temperature that is linear in the features",
    "ensemble": "mean of set-level, nearest cluster and regression",
    "shift-aware": "a temperature for each row, by how unusual the row is",
    "auto": "a mix of temperatures, weighted by left-out domains; class offsets",
    "auto-temperature": "a mix of temperatures, weighted by left-out domains",
}


def plain_name(method: str) -> str:
    """What a method is, in plain words; empty of most."""
    base, source, _ = method.partition("+source")
    name = PLAIN_NAMES.get(base, "")
    return f"{name}, with rows of the training domain" if name and source else name


def proposed(methods: Sequence[str]) -> list[str]:
    """Return the methods that are neither references nor oracles."""
    return [name for name in methods if name not in BASELINES]


def competing(methods: Sequence[str]) -> list[str]:
    """Return labels of the methods that need no labels of the target."""
    return [label(name) for name in methods if not _sees_labels(name)]


def seen_of_target(method: str) -> str:
    """What a method sees of the target, as text; empty for most."""
    return known_method(method).seen_of_target


def _sees_labels(method: str) -> bool:
    known = known_method(method)
    return known.is_oracle or known.labels > 0


def _by_number(name: str) -> list[tuple[bool, int, str]]:
    """Key under which auto+20 comes before auto+100."""
    parts = re.split(r"(\d+)", name)
    return [(p.isdigit(), int(p) if p.isdigit() else 0, p) for p in parts]


PER_CENT = ("ece", "gain", "accuracy", "brier", "top_brier", "confidence", "signed_gap")


def scores_by_classifier(results: pl.DataFrame) -> dict[str, RunScores]:
    """Scores of each classifier of a table of results; empty if that is."""
    rate = pl.col("metric").str.contains(f"^({'|'.join(PER_CENT)})(_|$)")
    shown = pl.when(rate).then(pl.col("value") * 100).otherwise(pl.col("value"))
    wide = results.with_columns(value=shown).pivot(
        on="metric", index=[*KEY_COLUMNS, "method"], values="value"
    )
    if "n_evaluated" in wide.columns:
        # A target without rows has no scores to average.
        wide = wide.filter(pl.col("n_evaluated") > 0)
    parts = wide.partition_by("classifier", as_dict=True)
    return {name: RunScores(part) for (name,), part in parts.items()}
