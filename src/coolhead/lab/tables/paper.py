"""The numbers printed in the tables of Gong et al. (ICCV 2021), uncorrected."""

from collections.abc import Iterator
from importlib.resources import files
from math import hypot
from typing import Any

import polars as pl

from coolhead.methods import known_method
from coolhead.report.tables import TableBuilder


def _folder() -> Any:
    return files("coolhead.lab.tables") / "paper_tables"


def paper_table_names() -> list[str]:
    """Names that `paper_table` knows, sorted."""
    tables = _folder().iterdir()
    return sorted(t.name[:-4] for t in tables if t.name.endswith(".csv"))


def paper_table(name: str) -> pl.DataFrame:
    """One table of the paper as a polars DataFrame.

    ECE, gain and accuracy are in per cent. Target ALL is the paper's overall column.
    Standard deviations in the by-split tables are over 1000 subsamples of one split,
    in the by-target tables pooled over subsamples and splits. `significant` is the
    paper's asterisk, `bold` its bold face; null means not printed. The calibration
    domains are those that are neither source nor target.

    Parameters
    ----------
    name : one of `paper_table_names()`
    """
    names = paper_table_names()
    if name not in names:
        msg = f"name is {name!r}; wanted one of {', '.join(names)}"
        raise ValueError(msg)
    table = _folder().joinpath(f"{name}.csv").read_bytes()
    return pl.read_csv(table, infer_schema_length=None)


Printed = tuple[float, float | None]


class Published:
    """What the paper prints for one data set, ``office_home`` or ``domainnet``."""

    NOTE = (
        "Paper: the printed value. Difference: ours minus the paper's, in units of the "
        "combined standard error sqrt(sd ours² + sd paper²). TransCal and WTS beside "
        "the paper's have the weights of TransCal's released code. The paper took its "
        "figures of both from their papers, on networks adapted to the target by CDAN; "
        "ours are on networks that are not adapted."
    )

    def __init__(self, dataset: str):
        self.dataset = dataset

    def by_target(self, method: str, target: str) -> Printed | None:
        """Mean and pooled sigma of a method on a target, or on ``all``."""
        table = paper_table(f"{self.dataset}_by_target")
        wanted = "ALL" if target == "all" else target
        return _first(table, method, {"target_domain": wanted})

    def by_split(self, method: str, source: str, target: str) -> Printed | None:
        """Mean and sd of a method on one split; sources are joined with ``+``."""
        table = paper_table(f"{self.dataset}_by_split_long")
        if self.dataset == "domainnet":
            both = pl.concat_str("source_1", "source_2", separator="+")
            table = table.with_columns(source=both)
        return _first(table, method, {"source": source, "target": target})

    def has_asterisk(self, method: str, source: str, target: str) -> bool:
        """Whether the printed ECE of a split has one; Office-Home only."""
        if self.dataset != "office_home":
            return False
        table = paper_table("office_home_ece_ci")
        where = {"source": source, "target": target}
        found = _first(table, method, where, value="significant", sd=None)
        return found is not None and found[0] == 1

    def gain(self, method: str, source: str, target: str) -> dict[str, Any]:
        """Calibration gain on one split: value, low, high, mark; Office-Home only."""
        if self.dataset != "office_home":
            return {}
        table = paper_table("office_home_calibration_gain_ci")
        where = {"source": source, "target": target}
        row = _row(table, method, where)
        if row is None:
            return {}
        mean, low, high = (row[f"gain_percent_{n}"] for n in ("mean", "p2.5", "p97.5"))
        mark = "*" if row["significant"] == 1 else ""
        return {"value": mean, "low": low, "high": high, "mark": mark}

    def improvement_ratio(self, method: str) -> float | None:
        """The printed improvement ratio."""
        printed = _first(
            paper_table("improvement_ratio"),
            method,
            {},
            value=f"{self.dataset}_ir",
            sd=None,
        )
        return None if printed is None else printed[0]

    def accuracy(self, target: str) -> float | None:
        """The printed accuracy; Office-Home only."""
        if self.dataset != "office_home":
            return None
        table = paper_table("office_home_accuracy")
        found = table.filter(_same(pl.col("target"), target))
        return found["accuracy_percent"][0] if len(found) else None

    def multi_source(self, target: str) -> dict[str, float]:
        """Accuracy and ECE of the appendix's multi-source experiment."""
        table = paper_table("office_home_multi_source")
        found = table.filter(_same(pl.col("target"), target))
        if self.dataset != "office_home" or found.is_empty():
            return {}
        row = found.row(0, named=True)
        return {"accuracy": row["accuracy_percent"], "ECE": row["ece_percent"]}

    def splits_harmed(self, method: str) -> tuple[int, int] | None:
        """Splits with a printed ECE above that of no calibration, and all splits."""
        name = known_method(method).paper or ""
        table = paper_table(f"{self.dataset}_by_split_long")
        keys = [key for key in table.columns if key.startswith(("source", "target"))]
        own = table.filter(pl.col("method") == name)
        before = table.filter(pl.col("method") == "uncalibrated")
        both = own.join(before, on=keys, suffix="_before")
        if both.is_empty():
            return None
        column = "ece_percent_mean"
        return int((both[column] > both[f"{column}_before"]).sum()), both.height

    def several_sources_help(self) -> dict[str, tuple[bool, float, float]]:
        """By target: whether three sources have the lower ECE, and both printed ones.

        The paper does not say which of its methods it used; the ensemble stands for it.
        """
        found = {}
        for target in ("Real World", "Product", "Art", "Clipart"):
            one, several = self.by_target("ensemble", target), self.multi_source(target)
            if one is not None and several:
                found[target] = several["ECE"] < one[0], one[0], several["ECE"]
        return found

    def sigma_counts(self, rival: str) -> list[float]:
        """Splits by reduction in sd of the draws; Office-Home, TransCal and WTS."""
        table = paper_table("sigma_counts").filter(pl.col("baseline") == rival)
        if self.dataset != "office_home" or table.is_empty():
            return []
        return [float(count) for count in table.row(0)[1:]]

    @staticmethod
    def formations() -> Iterator[tuple[str, str, float]]:
        """(row, column, value) of the StarCraft2 table."""
        names = {"plain": "plain", "domain_invariant_mldg": "mldg"}
        for row in paper_table("starcraft2").iter_rows(named=True):
            column = names[row["features"]]
            yield "Uncalibrated", column, row["uncalibrated_ece_percent"]
            yield "Target-only (oracle)", column, row["target_only_ece_percent"]
            yield "Proposed (which is not said)", column, row["ours_ece_percent"]

    @staticmethod
    def compare(
        cells: TableBuilder,
        row: str,
        column: str,
        ours: float,
        sd: float,
        printed: Printed | None,
        *,
        mark: str = "",
    ) -> None:
        """Add the printed value and the difference to a row of a table."""
        if printed is None:
            return
        value, theirs = printed
        cells.add(row, f"{column}, paper", value, sd=theirs, mark=mark)
        combined = hypot(sd, theirs or 0.0)
        if combined > 0:
            cells.add(row, f"{column}, difference", (ours - value) / combined)


def _first(
    table: pl.DataFrame,
    method: str,
    where: dict[str, str],
    *,
    value: str = "ece_percent_mean",
    sd: str | None = "ece_percent_std",
) -> Printed | None:
    row = _row(table, method, where)
    if row is None or row[value] is None:
        return None
    return float(row[value]), None if sd is None else row[sd]


def _row(
    table: pl.DataFrame, method: str, where: dict[str, str]
) -> dict[str, Any] | None:
    name = known_method(method).paper
    if name is None:
        return None
    conditions = [_same(pl.col(key), wanted) for key, wanted in where.items()]
    found = table.filter(pl.col("method") == name, *conditions)
    return None if found.is_empty() else found.row(0, named=True)


def _same(column: pl.Expr, name: str) -> pl.Expr:
    """Domain names agree up to case, separators, and "Real World" for "Real"."""
    plain = column.str.to_lowercase().str.replace_all("[^a-z+]", "")
    wanted = "".join(c for c in name.lower() if c.isalpha() or c == "+")
    return _sorted_parts(plain) == "+".join(
        sorted(part.replace("realworld", "real") for part in wanted.split("+"))
    )


def _sorted_parts(column: pl.Expr) -> pl.Expr:
    return column.str.split("+").list.sort().list.join("+")
