"""What a method says about the evaluated rows, reduced to vectors."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from inspect import signature
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from coolhead.lab.adaptation import LabelBudget, adapt
from coolhead.lab.protocol import EvaluationSettings, Methods
from coolhead.lab.rows import FittedMethod, SplitRows
from coolhead.methods import find_method
from coolhead.metrics import (
    PairedBootstrap,
    SubsampledScore,
    Subsamples,
    draw_subsamples,
    expected_calibration_error,
    holm,
    paired_bootstrap,
)
from coolhead.metrics.bins import Interval
from coolhead.metrics.resampling import subsample_eces
from coolhead.metrics.scored import ScoredRows, ScoreSums, score_calibrated
from coolhead.numerics.softmax import softmax
from coolhead.plugins import load_plugin
from coolhead.report.results import (
    CellResult,
    add_curves,
    note_masked,
    point_scores,
)


def predict(
    calibrator: Any,
    rows: Any,
    evaluation: EvaluationSettings | None = None,
    class_number: int | None = None,
) -> ScoredRows:
    """Apply a fitted calibrator; None stands for the uncalibrated classifier.

    Parameters
    ----------
    calibrator : fitted, or None
    rows : with logits, labels and features
    evaluation : EvaluationSettings, default=None
        Number of bins, and functions of the user.
    class_number : int, default=None
        The class whose own calibration error is wanted.
    """
    evaluation = evaluation or EvaluationSettings()
    scored = score_calibrated(
        calibrator, rows.logits, rows.labels, rows.features, n_bins=evaluation.bins
    )
    extra = {}
    if class_number is not None:
        sums = ScoreSums(scored.sums(evaluation.bins)[0], evaluation.bins)
        extra["ece_class"] = sums.class_errors[class_number]
    for name in evaluation.metrics:
        metric: Any = load_plugin(name)
        pair = scored.correct, scored.confidence
        if _takes_probabilities(metric):
            pair = rows.labels, _probabilities(calibrator, rows)
        extra[metric_name(name)] = float(metric(*pair))
    return replace(scored, extra=extra)


def _takes_probabilities(metric: Any) -> bool:
    try:
        return "probabilities" in signature(metric).parameters
    except ValueError:  # some functions of C have no signature
        return False


def _probabilities(calibrator: Any, rows: Any) -> np.ndarray:
    if calibrator is None:
        return softmax(rows.logits, 1.0)
    return calibrator.predict_proba(rows.logits, rows.features)


REFERENCES = {"uncalibrated": "uncalibrated", "source": "source-only"}


def score_methods(
    predictions: Mapping[str, ScoredRows],
    evaluation: EvaluationSettings,
    random_state: int,
    result: CellResult,
) -> None:
    """Add every score of every method, and the curves the report draws."""
    if not predictions:
        return
    first = next(iter(predictions.values()))
    note_masked(first, result)
    n_rows = len(first.correct)
    draws = _draw(n_rows, evaluation, random_state)
    resampled = resampled_scores(predictions, draws, evaluation)
    for name, found in predictions.items():
        scores = point_scores(found, evaluation.bins, draws.size)
        scores |= _spread_of_draws(resampled[name])
        scores |= _top_label_gain(predictions, name)
        for metric, value in scores.items():
            result.add("results", method=name, metric=metric, value=float(value))
        add_curves(name, found, evaluation.bins, result)
    if len(predictions) > 1:
        _compare(predictions, evaluation, random_state, result)


def _draw(n_rows: int, evaluation: EvaluationSettings, random_state: int) -> Subsamples:
    with warnings.catch_warnings():
        # Too few rows: `subsample_size` among the results says how many were drawn.
        warnings.simplefilter("ignore", UserWarning)
        return draw_subsamples(
            n_rows, evaluation.size, evaluation.draws, random_state=random_state
        )


def resampled_gains(
    predictions: Mapping[str, ScoredRows], draws: Subsamples
) -> dict[str, SubsampledScore]:
    """Fall of the Brier score against uncalibrated on every draw, all methods at once.

    A draw is a row of a sparse matrix of ones; one product sums all methods.
    """
    before = predictions.get("uncalibrated")
    if before is None:
        return {}
    ones = np.ones(draws.indices.size)
    starts = np.arange(draws.n_draws + 1) * draws.size
    shape = draws.n_draws, draws.n_rows
    sums = csr_array((ones, draws.indices.ravel(), starts), shape=shape)
    briers = np.stack([found.rows.brier for found in predictions.values()], axis=1)
    gains = before.rows.brier[:, None] - briers
    values = (sums @ gains) / draws.size
    return {
        name: SubsampledScore(float(gain.mean()), value)
        for name, gain, value in zip(predictions, gains.T, values.T, strict=True)
    }


def resampled_scores(
    predictions: Mapping[str, ScoredRows],
    draws: Subsamples,
    evaluation: EvaluationSettings,
) -> dict[str, dict[str, SubsampledScore]]:
    """ECE with both numbers of bins, and the gain, of every method on the draws."""
    pairs = [(found.correct, found.confidence) for found in predictions.values()]
    eces = subsample_eces(pairs, draws, evaluation.bins)
    others = subsample_eces(pairs, draws, evaluation.other_bins)
    scores = {
        name: {"ece": ece, "ece_other": other}
        for name, ece, other in zip(predictions, eces, others, strict=True)
    }
    for name, gain in resampled_gains(predictions, draws).items():
        scores[name]["gain"] = gain
    return scores


def _spread_of_draws(pieces: dict[str, SubsampledScore]) -> dict[str, float]:
    """Mean, sd and percentiles over the draws."""
    scores: dict[str, float] = {}
    if "gain" in pieces:
        scores["gain"] = pieces["gain"].estimate
    for name, piece in pieces.items():
        scores[f"{name}_mean"] = piece.mean
        scores[f"{name}_sd"] = piece.standard_deviation
        scores[f"{name}_low"] = piece.low
        scores[f"{name}_high"] = piece.high
    return scores


def metric_name(name: str) -> str:
    """The name under which a metric of the user stands in the results."""
    return name.rpartition(":")[2]


def _top_label_gain(
    predictions: Mapping[str, ScoredRows], name: str
) -> dict[str, float]:
    if "uncalibrated" not in predictions:
        return {}
    before, after = predictions["uncalibrated"], predictions[name]
    return {"gain_top": float((before.top_brier - after.top_brier).mean())}


def _compare(
    predictions: Mapping[str, ScoredRows],
    evaluation: EvaluationSettings,
    random_state: int,
    result: CellResult,
) -> None:
    """Add the paired difference of the ECE to each reference: negative is better."""
    alone = paired_bootstrap(
        {name: found.correct for name, found in predictions.items()},
        {name: found.confidence for name, found in predictions.items()},
        n_bins=evaluation.bins,
        n_draws=evaluation.bootstrap,
        random_state=random_state,
    )
    for short, reference in REFERENCES.items():
        if reference in predictions:
            _add_differences(short, alone.against(reference), result)


def _add_differences(short: str, found: PairedBootstrap, result: CellResult) -> None:
    clear = holm(found.p_values)
    for name, change in found.differences.items():
        scores = {
            f"ece_vs_{short}": change.estimate,
            f"ece_vs_{short}_low": change.low,
            f"ece_vs_{short}_high": change.high,
            f"better_than_{short}": float(clear[name] and change.estimate < 0),
            f"worse_than_{short}": float(clear[name] and change.estimate > 0),
        }
        for metric, value in scores.items():
            result.add("results", method=name, metric=metric, value=float(value))


PLAIN = "plain"


def score_draws(
    predictions: Mapping[str, Sequence[ScoredRows]],
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


def add_adaptations(
    data: SplitRows,
    methods: Methods,
    fitted: Mapping[str, Sequence[FittedMethod]],
    predictions: Mapping[str, Sequence[ScoredRows]],
    n_bins: int,
    result: CellResult,
) -> None:
    """Add every draw of every method that adapts, and the bases they started from."""
    known = {name: find_method(name) for name in fitted}
    bases = {name: method.base for name, method in known.items() if method.base}
    for name, draws in fitted.items():
        method = known[name]
        expected = [draw.expected for draw in draws]
        base = method.base or (PLAIN if method.labels else name)
        if name in bases.values():
            example = next(one for one, base in bases.items() if base == name)
            started = find_method(example)
            expected = [_before_adaptation(data, started, methods.clusters)]
        elif base == name:
            continue
        for draw, interval in enumerate(expected):
            answer = predictions[name][draw]
            key = {"base": base, "batch": method.batch, "n_labels": method.labels}
            row = arrival_row(answer, interval, n_bins)
            result.add("adaptation", method=name, **key, draw=draw, **row)


def arrival_row(
    found: ScoredRows, expected: Interval | None, n_bins: int
) -> dict[str, float | None]:
    """Error, truth and what was expected, of the table ``adaptation``."""
    pair = found.correct, found.confidence
    ece = expected_calibration_error(*pair, n_bins=n_bins)
    return {
        "ece": float(ece),
        "truth": float(found.correct.mean()),
        "expected": None if expected is None else expected.estimate,
        "low": None if expected is None else expected.low,
        "high": None if expected is None else expected.high,
    }


def _before_adaptation(data: SplitRows, method: Any, n_clusters: int) -> Interval:
    """The accuracy expected of the target from the confidence of its rows alone."""
    base, nothing = data.base(method, n_clusters), LabelBudget(np.zeros(0, np.intp), 0)
    return adapt(base, data.batch, nothing, 0, use_batch=False, draw=0).accuracy
