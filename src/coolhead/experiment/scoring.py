"""Scores of all methods of a split, on the same rows and with the same draws."""

import warnings
from collections.abc import Iterator, Mapping

import numpy as np
from scipy.sparse import csr_array

from coolhead.experiment.curves import add_curves
from coolhead.experiment.predictions import Predictions
from coolhead.experiment.protocol import EvaluationSettings
from coolhead.experiment.results import CellResult
from coolhead.metrics import (
    PairedBootstrap,
    SubsampledScore,
    Subsamples,
    debiased_calibration_error,
    draw_subsamples,
    expected_calibration_error,
    expected_calibration_error_null,
    holm,
    maximum_calibration_error,
    paired_bootstrap,
    risk_coverage_curve,
    signed_calibration_gap,
)
from coolhead.metrics.subsamples import subsample_eces
from coolhead.plugins import load_plugin

REFERENCES = {"uncalibrated": "uncalibrated", "source": "source-only"}


def score_methods(
    predictions: Mapping[str, Predictions],
    evaluation: EvaluationSettings,
    random_state: int,
    result: CellResult,
) -> None:
    """Add every score of every method, and the curves the report draws."""
    if not predictions:
        return
    n_rows = len(next(iter(predictions.values())).correct)
    draws = _draw(n_rows, evaluation, random_state)
    resampled = resampled_scores(predictions, draws, evaluation)
    for name, found in predictions.items():
        scores = dict(point_scores(found, evaluation.bins, draws.size))
        scores |= _spread_of_draws(resampled[name])
        scores |= _top_label_gain(predictions, name)
        scores |= _own_metrics(found, evaluation.metrics)
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


def point_scores(
    found: Predictions, n_bins: int, size: int
) -> Iterator[tuple[str, float]]:
    """Scores on all evaluated rows; the null level is that of `size` rows."""
    pair = found.correct, found.confidence
    yield "n_evaluated", len(found.correct)
    yield "subsample_size", size
    yield "accuracy", found.correct.mean()
    yield "confidence", found.confidence.mean()
    yield "ece", expected_calibration_error(*pair, n_bins=n_bins)
    yield "ece_debiased", debiased_calibration_error(*pair, n_bins=n_bins)
    yield "ece_max", maximum_calibration_error(*pair, n_bins=n_bins)
    null = expected_calibration_error_null(pair[1], n_bins=n_bins, size=size)
    yield "ece_null", null
    yield "signed_gap", signed_calibration_gap(*pair)
    yield "nll", found.log_loss.mean()
    yield "brier", found.brier.mean()
    yield "top_brier", found.top_brier.mean()
    yield "risk_area", risk_coverage_curve(*pair).area
    if found.temperature is not None:
        yield "temperature_median", np.median(found.temperature)


def resampled_gains(
    predictions: Mapping[str, Predictions], draws: Subsamples
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
    gains = np.stack([before.brier - p.brier for p in predictions.values()], axis=1)
    values = (sums @ gains) / draws.size
    return {
        name: SubsampledScore(float(gain.mean()), value)
        for name, gain, value in zip(predictions, gains.T, values.T, strict=True)
    }


def resampled_scores(
    predictions: Mapping[str, Predictions],
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


def _own_metrics(found: Predictions, names: tuple[str, ...]) -> dict[str, float]:
    """What the functions of the user say, under their names."""
    metrics = {metric_name(name): load_plugin(name) for name in names}
    return {
        name: float(metric(found.correct, found.confidence))
        for name, metric in metrics.items()
    }


def metric_name(name: str) -> str:
    """The name under which a metric of the user stands in the results."""
    return name.rpartition(":")[2]


def _top_label_gain(
    predictions: Mapping[str, Predictions], name: str
) -> dict[str, float]:
    if "uncalibrated" not in predictions:
        return {}
    before, after = predictions["uncalibrated"], predictions[name]
    return {"gain_top": float((before.top_brier - after.top_brier).mean())}


def _compare(
    predictions: Mapping[str, Predictions],
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
