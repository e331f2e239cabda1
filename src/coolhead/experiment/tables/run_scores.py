"""The results of one classifier of a run, ready to be averaged."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from coolhead.experiment.methods import METHODS, known_method
from coolhead.experiment.results import KEY_COLUMNS, read_table

BASELINES = ("uncalibrated", "source-only", "target-only", "target-ece-oracle")


@dataclass(frozen=True)
class RunScores:
    """One row per split, seed and method; one column per metric; errors in per cent."""

    frame: pl.DataFrame
    # Tables ask for the same parts of the frame in thousands: each is cut out once.
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
    """The name of a method as it stands in tables."""
    return known_method(method).label


def proposed(methods: Sequence[str]) -> list[str]:
    """The methods that are neither references nor oracles."""
    return [name for name in methods if name not in BASELINES]


def competing(methods: Sequence[str]) -> list[str]:
    """Labels of the methods that somebody could use who has no labels there."""
    return [label(name) for name in methods if not _sees_labels(name)]


def seen_of_target(method: str) -> str:
    """What a method sees of the target, in words; empty of most."""
    return known_method(method).seen_of_target


def _sees_labels(method: str) -> bool:
    known = known_method(method)
    return known.is_oracle or known.labels > 0


def _by_number(name: str) -> list[tuple[bool, int, str]]:
    """Key under which auto+20 comes before auto+100."""
    parts = re.split(r"(\d+)", name)
    return [(p.isdigit(), int(p) if p.isdigit() else 0, p) for p in parts]


PER_CENT = ("ece", "gain", "accuracy", "brier", "top_brier", "confidence", "signed_gap")


def load_scores(run: str | Path) -> dict[str, RunScores]:
    """Scores of a run by classifier."""
    results = read_table(run, "results")
    if results.is_empty():
        raise ValueError(f"{run} holds no results: every cell failed, see failures")
    return scores_by_classifier(results)


def scores_by_classifier(results: pl.DataFrame) -> dict[str, RunScores]:
    """The same from the table of results; empty if that is."""
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
