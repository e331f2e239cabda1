"""What the error depends on: clusters, calibration rows and domains, and bins."""

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

import numpy as np

from coolhead.calibrators.data import CalibrationData, fit_with
from coolhead.lab.protocol import Ablation, Methods
from coolhead.lab.rows import SplitRows, fit_method
from coolhead.methods import METHODS, find_method
from coolhead.metrics import expected_calibration_error
from coolhead.metrics.bins import Binning
from coolhead.metrics.scored import ScoredRows, score_calibrated
from coolhead.report.results import CellResult

CLUSTERED = ("nearest-cluster", "regression", "ensemble")
VARIED = ("set-level", *CLUSTERED)
BINNINGS: tuple[tuple[Binning, str], ...] = (("width", ""), ("mass", ", equal mass"))


def vary_clusters(
    data: SplitRows, methods: Methods, n_bins: int, result: CellResult
) -> None:
    """Add the ECE of the cluster methods for other numbers of clusters."""
    names = [name for name in CLUSTERED if name in methods.names]
    for n_clusters in methods.sensitivity:
        if n_clusters > len(data.labelled(("calibration",)).labels):
            continue
        for name in names:
            calibrator = fit_method(find_method(name), data, n_clusters=n_clusters)
            ece = _ece(data, calibrator, n_bins)
            result.add("sensitivity", method=name, n_clusters=n_clusters, ece=ece)


def vary_rows(
    data: SplitRows,
    methods: Methods,
    ablation: Ablation,
    n_bins: int,
    result: CellResult,
) -> None:
    """Add the ECE of the paper's methods fitted on fewer rows, or other domains."""
    names = [name for name in VARIED if name in methods.names]
    for what, level, record in _records(data, ablation):
        for name in names:
            calibrator = METHODS[name].build(
                n_clusters=methods.clusters, random_state=data.random_state
            )
            ece = _ece(data, fit_with(calibrator, record), n_bins)
            result.add("ablation", what=what, level=level, method=name, ece=ece)


def _records(
    data: SplitRows, ablation: Ablation
) -> Iterator[tuple[str, str, CalibrationData]]:
    """Rows to fit on; several of one level are averaged by the tables."""
    whole = data.labelled(("calibration",))
    for share in ablation.rows:
        chosen = some_of_each_domain(whole.domains.codes, share, data.random_state)
        yield "rows", f"{share:.0%}", whole.take(chosen)
    calibration, source = data.split.calibration, data.split.source
    everything = data.labelled(("calibration", "source"))
    for count in ablation.domains:
        if count <= len(calibration):
            choices = combinations(calibration, count)
        else:
            choices = iter([calibration + source])
        for names in choices:
            rows = np.isin(everything.sample_domain, names)
            # The source counts as one more domain to the paper's methods.
            record = everything.take(rows).only(("features",))
            yield "domains", str(len(names)), record


def some_of_each_domain(codes: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Draw the given share of the rows of each domain, at least one.

    The rows of a smaller share are among those of a larger one.

    Parameters
    ----------
    codes : ndarray of shape (n_samples,)
        Domain of each row.
    share : float
        In (0, 1].
    seed : int

    Returns
    -------
    ndarray of int
        Row numbers, sorted.
    """
    order = np.random.default_rng(seed).permutation(len(codes))
    chosen = []
    for code in np.unique(codes):
        own = order[codes[order] == code]
        chosen.append(own[: max(1, round(share * len(own)))])
    return np.sort(np.concatenate(chosen))


def vary_bins(
    predictions: Mapping[str, ScoredRows], ablation: Ablation, result: CellResult
) -> None:
    """Add the ECE of every method in other numbers of bins, and in equal masses."""
    for n_bins in ablation.bins:
        for name, found in predictions.items():
            pair = found.correct, found.confidence
            for binning, level in BINNINGS:
                ece = expected_calibration_error(*pair, n_bins=n_bins, binning=binning)
                row: dict[str, Any] = {"what": "bins", "level": f"{n_bins}{level}"}
                result.add("ablation", **row, method=name, ece=float(ece))


def _ece(data: SplitRows, calibrator: Any, n_bins: int) -> float:
    """ECE on all evaluated rows."""
    rows = data.evaluated
    found = score_calibrated(calibrator, rows.logits, rows.labels, rows.features)
    ece = expected_calibration_error(found.correct, found.confidence, n_bins=n_bins)
    return float(ece)
