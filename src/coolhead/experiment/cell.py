"""One cell: fit every method on one split and score it. A pure function."""

import warnings
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from coolhead.archive import DomainArchive
from coolhead.experiment.examples import add_examples
from coolhead.experiment.landscape import describe_shift, draw_map
from coolhead.experiment.methods import find_method
from coolhead.experiment.pictures import Pictures
from coolhead.experiment.predictions import Predictions, predict
from coolhead.experiment.protocol import EvaluationSettings, Methods
from coolhead.experiment.results import CellResult
from coolhead.experiment.rows import FittedMethod, SplitRows, fit_draws, fit_method
from coolhead.experiment.scored_draws import add_arrivals, score_draws
from coolhead.experiment.splits import Split
from coolhead.metrics import expected_calibration_error

CLUSTERED = ("nearest-cluster", "regression", "ensemble")


def evaluate_cell(
    archive: DomainArchive,
    small: np.ndarray,
    split: Split,
    methods: Methods,
    evaluation: EvaluationSettings,
    *,
    random_state: int = 0,
    reference_features: np.ndarray | None = None,
    partition_folder: Path | None = None,
    pictures: Pictures | None = None,
) -> CellResult:
    """Fit and score all methods of one split.

    Parameters
    ----------
    archive : logits, labels and features of all domains by one classifier.
    small : (n,) bool, the Small rows of every domain.
    split, methods, evaluation : what the protocol says.
    random_state : seed of k-means, draws and whatever a method draws.
    reference_features : (r, d) what the classifier learned from, where that is not
        the source's Large rows.
    partition_folder : where k-means is kept, to be found by other cells.
    pictures : draws a row by its number and id, for data that are images.

    Returns
    -------
    CellResult. A method that raises is recorded there; the others go on.
    """
    data = SplitRows(
        archive,
        small,
        split,
        reference_features=reference_features,
        unlabelled_rows=methods.discriminator_rows,
        random_state=random_state,
        partition_folder=partition_folder,
    )
    result = CellResult()
    fitted, predictions = _fit_all(data, methods, result)
    score_draws(predictions, evaluation, random_state, result)
    add_arrivals(data, methods, fitted, predictions, evaluation.bins, result)
    if pictures is not None:
        first = {name: draws[0] for name, draws in predictions.items()}
        add_examples(data, first, pictures, result)
    if archive.features is not None:
        with warnings.catch_warnings():
            # What methods have to say was recorded when they were fitted.
            warnings.simplefilter("ignore")
            _describe(data, methods, fitted, result)
            _vary_clusters(data, methods, evaluation.bins, result)
    return result


def _fit_all(
    data: SplitRows, methods: Methods, result: CellResult
) -> tuple[dict[str, list[FittedMethod]], dict[str, list[Predictions]]]:
    """What was fitted and what it says, once for each draw of target labels."""
    fitted, predictions = {}, {}
    for name in methods.names:
        start = perf_counter()
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            try:
                draws = fit_draws(
                    find_method(name),
                    data,
                    n_clusters=methods.clusters,
                    n_draws=methods.label_draws,
                )
                middle = perf_counter()
                predictions[name] = [
                    predict(draw.calibrator, data.evaluated) for draw in draws
                ]
            except Exception as error:
                result.add("failures", method=name, error=describe_error(error))
                continue
        fitted[name] = draws
        _add_status(name, draws[0].calibrator, heard, result)
        result.add(
            "runtimes",
            method=name,
            fit_seconds=(middle - start) / len(draws),
            predict_seconds=(perf_counter() - middle) / len(draws),
        )
    return fitted, predictions


def describe_error(error: Exception) -> str:
    """Type and message of an error, in one line."""
    return f"{type(error).__name__}: {error}".replace("\n", " ")


def _add_status(name: str, calibrator: Any, heard: list, result: CellResult) -> None:
    status = np.atleast_1d(getattr(calibrator, "status_", ""))
    kinds, counts = np.unique(status.astype(str), return_counts=True)
    often = kinds[np.argsort(-counts, kind="stable")]
    said = dict.fromkeys(str(warning.message) for warning in heard)
    result.add(
        "status",
        method=name,
        status="; ".join(often),
        n_fallbacks=int(getattr(calibrator, "n_fallbacks_", 0)),
        clipped_share=float(getattr(calibrator, "clipped_share_", 0.0)),
        warnings="; ".join(said),
    )


def _describe(
    data: SplitRows,
    methods: Methods,
    fitted: dict[str, list[FittedMethod]],
    result: CellResult,
) -> None:
    try:
        describe_shift(data, methods.clusters, result)
        if "nearest-cluster" in fitted:
            nearest = fitted["nearest-cluster"][0].calibrator
        else:
            nearest = fit_method(
                find_method("nearest-cluster"), data, n_clusters=methods.clusters
            )
        draw_map(data, methods.clusters, nearest.cluster_temperatures_, result)
    except ValueError as error:
        # Too few rows for a discriminator or a map: the scores stand all the same.
        result.add("notes", note=describe_error(error))


def _vary_clusters(
    data: SplitRows, methods: Methods, n_bins: int, result: CellResult
) -> None:
    """ECE of the cluster methods for other numbers of clusters."""
    names = [name for name in CLUSTERED if name in methods.names]
    for n_clusters in methods.sensitivity:
        for name in names:
            if n_clusters > len(data.labelled(("calibration",)).labels):
                continue
            calibrator = fit_method(find_method(name), data, n_clusters=n_clusters)
            found = predict(calibrator, data.evaluated)
            ece = expected_calibration_error(
                found.correct, found.confidence, n_bins=n_bins
            )
            result.add("sensitivity", method=name, n_clusters=n_clusters, ece=ece)
