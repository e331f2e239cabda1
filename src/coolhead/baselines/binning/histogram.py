"""Histogram binning: the confidence of a bin is the accuracy seen in it."""

from dataclasses import KW_ONLY

import numpy as np

from coolhead.baselines.binning.one_score import Curve, CurveCalibrator
from coolhead.baselines.classwise.base import ScoreData
from coolhead.calibrators.parameters import Count, parameters
from coolhead.numerics.checks import check_choice


@parameters
class HistogramBinning(CurveCalibrator):
    """Replaces a probability by the share of hits in its bin.

    Parameters
    ----------
    n_bins : number of bins.
    binning : "width" for bins of equal width, "mass" for bins of equal numbers.
    scheme : "top_label" calibrates the confidence, "one_vs_all" every class.

    Attributes
    ----------
    curves_ : list of (edges, values); a value holds up to and with its right edge.
    accuracy_change_, absent_classes_, status_, nll_, nll_uncalibrated_

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([3.0])
    >>> cal = ch.baselines.HistogramBinning(n_bins=10).fit(data.logits, data.labels)
    >>> cal.nll_ < cal.nll_uncalibrated_, len(cal.curves_)
    (True, 1)
    """

    n_bins: Count = 15
    _: KW_ONLY
    binning: str = "width"
    scheme: str = "top_label"

    def _learn_scores(self, data: ScoreData) -> str:
        check_choice(self.binning, "binning", "width", "mass")
        return super()._learn_scores(data)

    def _fit_curve(
        self, scores: np.ndarray, hits: np.ndarray, weights: np.ndarray
    ) -> Curve:
        inner = np.arange(1, self.n_bins) / self.n_bins
        if self.binning == "mass":
            inner = np.unique(np.quantile(scores, inner))
        index = np.searchsorted(inner, scores, side="left")
        mass = np.bincount(index, weights, len(inner) + 1)
        right = np.bincount(index, weights * hits, len(inner) + 1)
        edges = np.concatenate([[0.0], inner, [1.0]])
        # An empty bin has nothing to say: it keeps its middle.
        values = (edges[:-1] + edges[1:]) / 2
        values[mass > 0] = right[mass > 0] / mass[mass > 0]
        return inner, values
