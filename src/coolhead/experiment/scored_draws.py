"""Methods that see some target labels: scores averaged over draws of these."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from coolhead.experiment.arrival import LabelDesk, arrive
from coolhead.experiment.methods import find_method
from coolhead.experiment.predictions import Predictions
from coolhead.experiment.protocol import EvaluationSettings, Methods
from coolhead.experiment.results import CellResult
from coolhead.experiment.rows import FittedMethod, SplitRows
from coolhead.experiment.scoring import REFERENCES, score_methods
from coolhead.metrics import expected_calibration_error
from coolhead.metrics.intervals import Interval

PLAIN = "plain"


def score_draws(
    predictions: Mapping[str, Sequence[Predictions]],
    evaluation: EvaluationSettings,
    random_state: int,
    result: CellResult,
) -> None:
    """`score_methods` of the first draws, then averages over all of them.

    Curves are those of the first draw. A method counts as clearly better or worse than
    a reference where every draw was.
    """
    first = {name: draws[0] for name, draws in predictions.items()}
    score_methods(first, evaluation, random_state, result)
    drawn = {name for name, draws in predictions.items() if len(draws) > 1}
    found: dict[tuple[str, str], list[float]] = {}
    for draw in range(1, max((len(predictions[name]) for name in drawn), default=1)):
        some = {name: predictions[name][draw] for name in drawn}
        some |= {name: first[name] for name in REFERENCES.values() if name in first}
        other = CellResult()
        score_methods(some, evaluation, random_state, other)
        for row in other.tables["results"]:
            key = row["method"], row["metric"]
            found.setdefault(key, []).append(row["value"])
    for row in result.tables["results"]:
        if row["method"] in drawn:
            values = [row["value"], *found[row["method"], row["metric"]]]
            clear = row["metric"].startswith(("better_than", "worse_than"))
            row["value"] = min(values) if clear else float(np.mean(values))


def add_arrivals(
    data: SplitRows,
    methods: Methods,
    fitted: Mapping[str, Sequence[FittedMethod]],
    predictions: Mapping[str, Sequence[Predictions]],
    n_bins: int,
    result: CellResult,
) -> None:
    """Every draw of every method that arrived, and the bases they started from."""
    known = {name: find_method(name) for name in fitted}
    arrived = {name: method.base for name, method in known.items() if method.base}
    for name, draws in fitted.items():
        method = known[name]
        expected = [draw.expected for draw in draws]
        base = method.base or (PLAIN if method.labels else name)
        if name in arrived.values():
            example = next(one for one, base in arrived.items() if base == name)
            expected = [_before_arrival(data, find_method(example), methods.clusters)]
        elif base == name:
            continue
        for draw, interval in enumerate(expected):
            answer = predictions[name][draw]
            key = {"base": base, "batch": method.batch, "n_labels": method.labels}
            row = arrival_row(answer, interval, n_bins)
            result.add("arrival", method=name, **key, draw=draw, **row)


def arrival_row(
    found: Predictions, expected: Interval | None, n_bins: int
) -> dict[str, float | None]:
    """Error, truth and what was expected, of the table ``arrival``."""
    pair = found.correct, found.confidence
    ece = expected_calibration_error(*pair, n_bins=n_bins)
    return {
        "ece": float(ece),
        "truth": float(found.correct.mean()),
        "expected": None if expected is None else expected.estimate,
        "low": None if expected is None else expected.low,
        "high": None if expected is None else expected.high,
    }


def _before_arrival(data: SplitRows, method: Any, n_clusters: int) -> Interval:
    """What is expected of a target whose rows tell no more than their confidence."""
    base, nothing = data.base(method, n_clusters), LabelDesk(np.zeros(0, np.intp), 0)
    return arrive(base, data.batch, nothing, 0, use_batch=False, draw=0).accuracy
