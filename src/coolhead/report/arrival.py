"""The section "In a new domain": sentences, and arrivals of one saved calibrator."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from coolhead.calibrators.base import TemperatureCalibrator
from coolhead.experiment.arrival import (
    Base,
    LabelDesk,
    TargetBatch,
    arrive,
    scale_plainly,
)
from coolhead.experiment.predictions import predict
from coolhead.experiment.rows import LabelledRows
from coolhead.experiment.scored_draws import PLAIN, arrival_row
from coolhead.experiment.tables.answer import plural
from coolhead.experiment.tables.arrivals import arrival_means
from coolhead.experiment.tables.run_scores import label

LABELS = (10, 20, 50, 100)
DRAWS = 3
# Of one domain's rows so many form the batch; the others tell the truth.
BATCH_SHARE, MOST_BATCH = 0.5, 5_000
SMALLEST = 40


def arrival_section(frame: pl.DataFrame, noun: str) -> dict[str, Any] | None:
    """Sentences and the methods to draw; None where nobody arrived."""
    told = [row for row in arrival_means(frame) if row["n"]] if len(frame) else []
    if not told:
        return None
    n_places = frame.select("split", "seed").unique().height
    several = frame["seed"].n_unique() > 1
    where = plural(n_places, noun) + (" × seeds" if several else "")
    # The least and the most that was known: the two that the first figure shows.
    shown = [row["method"] for row in (told[0], told[-1])]
    return {
        "where": where,
        "sentences": [_sentence(row) for row in told],
        "shown": list(dict.fromkeys(shown)),
        "labels": {row["method"]: label(row["method"]) for row in told},
    }


def _sentence(row: dict[str, Any]) -> str:
    return (
        f"{label(row['method'])}: the 90 % interval held the truth in "
        f"{row['n_covered']} of {row['n']} ({row['covered']:.0f} %) and was "
        f"{row['width']:.0f} points wide (median); the expected accuracy was off by "
        f"{row['off']:.1f} points, the ECE {row['ece']:.1f} %"
    ).replace(" %", "\N{NO-BREAK SPACE}%")


def arrivals_at(
    calibrator: Any, method: str, rows: LabelledRows, n_bins: int
) -> Iterator[dict[str, Any]]:
    """Rows of the table ``arrival`` for one domain the calibrator has not seen.

    Half of the rows, at most 5,000, are the batch that labels come from; errors and
    truth are those of the others.
    """
    known = getattr(calibrator, "evidence_", None)
    if not isinstance(calibrator, TemperatureCalibrator) or known is None:
        return
    n_rows = len(rows.labels)
    if n_rows < SMALLEST:
        return
    order = np.random.default_rng(0).permutation(n_rows)
    n_batch = min(int(BATCH_SHARE * n_rows), MOST_BATCH)
    small, large = (_take(rows, part) for part in (order[:n_batch], order[n_batch:]))
    base = Base(calibrator, known)
    batch = TargetBatch(small.logits, small.features)
    for n_labels in (0, *(n for n in LABELS if n <= n_batch)):
        for draw in range(DRAWS if n_labels else 1):
            for use_batch in (False, True):
                desk = LabelDesk(small.labels, n_labels)
                there = arrive(
                    base, batch, desk, n_labels, use_batch=use_batch, draw=draw
                )
                name = method + "+batch" * use_batch + f"+{n_labels}" * (n_labels > 0)
                key = {"method": name, "base": method, "batch": use_batch}
                key |= {"n_labels": n_labels, "draw": draw}
                found = predict(there.calibrator, large)
                yield key | arrival_row(found, there.accuracy, n_bins)
            if n_labels:
                desk = LabelDesk(small.labels, n_labels)
                found = predict(scale_plainly(batch, desk, [0, draw]), large)
                key = {"method": f"{PLAIN}+{n_labels}", "base": PLAIN, "batch": False}
                key |= {"n_labels": n_labels, "draw": draw}
                yield key | arrival_row(found, None, n_bins)


def _take(rows: LabelledRows, index: np.ndarray) -> LabelledRows:
    features = None if rows.features is None else rows.features[index]
    return LabelledRows(
        rows.logits[index], rows.labels[index], features, rows.sample_domain[index]
    )
