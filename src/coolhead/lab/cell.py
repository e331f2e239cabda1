"""One cell of a sweep: all methods of one split, and its shift diagnostics."""

import warnings
from collections.abc import Mapping
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.decomposition import PCA

from coolhead.calibrators.clustered import NearestClusterTemperature
from coolhead.evaluate import class_number
from coolhead.io.archive import DomainArchive
from coolhead.lab.ablation import vary_bins, vary_clusters, vary_rows
from coolhead.lab.pictures import Pictures
from coolhead.lab.plan import Split
from coolhead.lab.protocol import Ablation, EvaluationSettings, Methods
from coolhead.lab.rows import FittedMethod, SplitRows, fit_draws, fit_method
from coolhead.lab.scoring import add_adaptations, predict, score_draws
from coolhead.methods import Role, find_method
from coolhead.metrics.scored import ScoredRows
from coolhead.report.results import CellResult
from coolhead.shift import coverage, density_ratio
from coolhead.shift.clusters import Partition

DIAGNOSED_ROWS = 1_500
ROLES: tuple[Role, ...] = ("calibration", "source")
DRAWN_ROWS = {"calibration": 500, "target": 300}


def describe_shift(data: SplitRows, n_clusters: int, result: CellResult) -> None:
    """Add density-ratio diagnostics and the share outside the calibration data."""
    known = _some(data.labelled(("calibration",)).features, DIAGNOSED_ROWS)
    new = _some(data.evaluated.features, DIAGNOSED_ROWS)
    ratio = density_ratio(known, new, random_state=data.random_state)
    clusters = _partition(data, n_clusters).clusters
    numbers = {
        "weight_variance": ratio.variance,
        "renyi_divergence": ratio.divergence,
        "effective_sample_size": ratio.effective_sample_size,
        "n_calibration": len(known),
        "n_target": len(new),
        "discriminator_auroc": ratio.auroc,
        "share_clipped": ratio.share_clipped,
        "unreliable": ratio.unreliable,
        "share_outside": coverage(new, clusters).share_outside,
    }
    numbers |= _compare_variances(data, ratio.variance, len(known))
    for name, value in numbers.items():
        result.add("shift", diagnostic=name, value=float(value))


def _compare_variances(
    data: SplitRows, variance: float, n_known: int
) -> dict[str, float]:
    """Var(w) towards the target from calibration and from source domains.

    That the first is smaller is the claim behind the paper. Both have the same number
    of rows, since the estimate depends on it; of `n_known` calibration rows it is
    known already.
    """
    if data.split.source == data.split.calibration:
        return {}
    new = _some(data.evaluated.features, DIAGNOSED_ROWS)
    known = {role: data.labelled((role,)).features for role in ROLES}
    n_rows = min(DIAGNOSED_ROWS, *map(len, known.values()))

    def found(role: str, features: np.ndarray) -> float:
        if role == "calibration" and n_rows == n_known:
            return variance
        some = _some(features, n_rows)
        return density_ratio(some, new, random_state=data.random_state).variance

    return {f"weight_variance_{role}": found(role, f) for role, f in known.items()}


def draw_map(
    data: SplitRows, n_clusters: int, temperatures: np.ndarray, result: CellResult
) -> None:
    """Add points of the calibration and target features and the cluster centres.

    The plane is that of the two principal components of the calibration features;
    a point carries the temperature of its nearest cluster.
    """
    partition = _partition(data, n_clusters)
    calibration = data.labelled(("calibration",))
    plane = PCA(2, random_state=data.random_state)
    plane.fit(_some(calibration.features, DIAGNOSED_ROWS))
    groups = {"calibration": calibration, "target": data.evaluated}
    for role, rows in groups.items():
        index = _spread(len(rows.labels), DRAWN_ROWS[role])
        features = np.asarray(rows.features[index], np.float64)
        nearest, _ = partition.clusters.assign(features)
        _add_points(
            result,
            role,
            plane.transform(features),
            rows.sample_domain[index],
            nearest,
            temperatures,
        )
    centers = partition.clusters.centers
    numbers = np.arange(len(centers))
    names = np.full(len(centers), "")
    _add_points(
        result, "centre", plane.transform(centers), names, numbers, temperatures
    )


def _partition(data: SplitRows, n_clusters: int) -> Partition:
    """The clusters that the cluster methods were fitted on."""
    plain = NearestClusterTemperature(n_clusters, random_state=data.random_state)
    return plain.partition(data.labelled(("calibration",)))


def _add_points(
    result: CellResult,
    role: str,
    points: np.ndarray,
    domains: np.ndarray,
    clusters: np.ndarray,
    temperatures: np.ndarray,
) -> None:
    for point, domain, cluster in zip(points, domains, clusters, strict=True):
        # Four digits are more than a screen shows and halve the file.
        result.add(
            "map",
            x=_short(point[0]),
            y=_short(point[1]),
            role=role,
            domain=str(domain),
            cluster=int(cluster),
            temperature=_short(temperatures[cluster]),
        )


def _short(value: Any) -> float:
    return float(f"{value:.5g}")


def _spread(n_rows: int, wanted: int) -> np.ndarray:
    """At most `wanted` row numbers, evenly spread."""
    return np.unique(np.linspace(0, n_rows - 1, min(n_rows, wanted)).astype(int))


def _some(rows: np.ndarray, wanted: int) -> np.ndarray:
    return np.asarray(rows[_spread(len(rows), wanted)], np.float32)


N_EXAMPLES = 6


def add_examples(
    data: SplitRows,
    predictions: Mapping[str, ScoredRows],
    pictures: Pictures,
    result: CellResult,
) -> None:
    """Add the wrong rows with the highest uncalibrated confidence, highest first.

    One row of the table per example and method; the picture stands in the row of the
    uncalibrated classifier only.
    """
    before = predictions.get("uncalibrated")
    if before is None:
        return
    archive = data.archive
    wrong = np.flatnonzero(~before.correct)
    examples = wrong[np.argsort(-before.confidence[wrong], kind="stable")][:N_EXAMPLES]
    rows = data.evaluated_index[examples]
    ids = archive.rows(rows).ids
    for rank, (place, row) in enumerate(zip(examples, rows, strict=True)):
        name = str(row) if ids is None else str(ids[rank])
        picture = pictures(int(row), name)
        if picture is None:
            continue
        labels = data.evaluated.labels[place], data.evaluated.logits[place].argmax()
        label, predicted = (
            _class_name(archive.class_names, int(code)) for code in labels
        )
        for method, found in predictions.items():
            result.add(
                "examples",
                rank=rank,
                id=name,
                label=label,
                predicted=predicted,
                method=method,
                confidence=float(found.confidence[place]),
                thumbnail=picture if method == "uncalibrated" else "",
            )


def _class_name(names: tuple[str, ...] | None, code: int) -> str:
    return str(code) if names is None else names[code]


def evaluate_cell(
    archive: DomainArchive,
    small: np.ndarray,
    split: Split,
    methods: Methods,
    evaluation: EvaluationSettings,
    *,
    ablation: Ablation = Ablation(),  # noqa: B008 (frozen)
    random_state: int = 0,
    reference_features: np.ndarray | None = None,
    pictures: Pictures | None = None,
) -> CellResult:
    """Fit and score all methods of one split.

    Parameters
    ----------
    archive : DomainArchive
        Logits, labels and features of all domains by one classifier.
    small : ndarray of bool of shape (n_samples,)
        The Small rows of every domain.
    split, methods, evaluation, ablation
        Of the protocol.
    random_state : int, default=0
        Seed of k-means, of the draws and of the methods.
    reference_features : ndarray of shape (n_reference, n_features), default=None
        What the classifier was trained on, by default the source's Large rows.
    pictures : callable, default=None
        Draws a row by its number and id, for data that are images.

    Returns
    -------
    CellResult
        The error of a method that fails is recorded there; the others go on.
    """
    data = SplitRows(
        archive,
        small,
        split,
        reference_features=reference_features,
        unlabelled_rows=methods.discriminator_rows,
        random_state=random_state,
    )
    result = CellResult()
    fitted, predictions = _fit_all(data, methods, evaluation, result)
    score_draws(predictions, evaluation, random_state, result)
    add_adaptations(data, methods, fitted, predictions, evaluation.bins, result)
    first = {name: draws[0] for name, draws in predictions.items()}
    vary_bins(first, ablation, result)
    if pictures is not None:
        add_examples(data, first, pictures, result)
    if archive.features is not None:
        with warnings.catch_warnings():
            # Warnings of the methods were recorded when they were fitted.
            warnings.simplefilter("ignore")
            _describe(data, methods, fitted, result)
            vary_clusters(data, methods, evaluation.bins, result)
            vary_rows(data, methods, ablation, evaluation.bins, result)
    return result


def _fit_all(
    data: SplitRows,
    methods: Methods,
    evaluation: EvaluationSettings,
    result: CellResult,
) -> tuple[dict[str, list[FittedMethod]], dict[str, list[ScoredRows]]]:
    """Fitted methods and their scored rows, once for each draw of target labels."""
    fitted, predictions = {}, {}
    logits: Any = data.archive.logits
    names, width = data.archive.class_names, logits.shape[1]
    number = class_number(evaluation.class_name, names, width)
    for name in methods.names:
        start = perf_counter()
        with warnings.catch_warnings(record=True) as recorded:
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
                    predict(draw.calibrator, data.evaluated, evaluation, number)
                    for draw in draws
                ]
            except Exception as error:
                result.add("failures", method=name, error=describe_error(error))
                continue
        fitted[name] = draws
        _add_status(name, draws[0].calibrator, recorded, result)
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


def _add_status(name: str, calibrator: Any, recorded: list, result: CellResult) -> None:
    status = np.atleast_1d(getattr(calibrator, "status_", ""))
    kinds, counts = np.unique(status.astype(str), return_counts=True)
    often = kinds[np.argsort(-counts, kind="stable")]
    messages = dict.fromkeys(str(warning.message) for warning in recorded)
    result.add(
        "status",
        method=name,
        status="; ".join(often),
        n_fallbacks=int(getattr(calibrator, "n_fallbacks_", 0)),
        clipped_share=float(getattr(calibrator, "clipped_share_", 0.0)),
        warnings="; ".join(messages),
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
