"""One readable answer to: how different is this target from what I calibrated on?"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from coolhead.numerics.checks import check_domains
from coolhead.numerics.softmax import log_loss_rows
from coolhead.shift.bounds import TransferBounds, transfer_bounds
from coolhead.shift.clusters import find_regions
from coolhead.shift.coverage import Coverage, coverage
from coolhead.shift.decomposition import ClusterDecomposition, decompose_divergence
from coolhead.shift.inputs import feature_rows
from coolhead.shift.ratio import DensityRatio, density_ratio
from coolhead.shift.weights import domain_sample_sizes

FAR_OUTSIDE = 0.10


@dataclass(frozen=True)
class ShiftReport:
    """Everything the features say about the step from calibration to target.

    Attributes
    ----------
    n_calibration, n_target : numbers of rows.
    ratio : DensityRatio, with Var(w), d₂, effective sample size, AUROC, clipping.
    clusters : ClusterDecomposition of d₂.
    coverage : Coverage of the target by the calibration clusters.
    domains : {domain: (effective share of its rows, mean weight)}, empty if unknown.
    bounds : TransferBounds on the change of the loss, None without losses.

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([1.0, 1.0])
    >>> report = ch.shift.shift_report(data.select("site-0"), data.select("site-1"))
    >>> report.n_calibration, report.n_target, report.ratio.auroc > 0.9
    (300, 300, True)
    """

    n_calibration: int
    n_target: int
    ratio: DensityRatio
    clusters: ClusterDecomposition
    coverage: Coverage
    domains: dict
    bounds: TransferBounds | None

    @property
    def flags(self) -> tuple[str, ...]:
        """Sentences about what should worry the reader; empty when nothing does."""
        flags = [f"weights unreliable: {reason}" for reason in self.ratio.reasons]
        if self.ratio.share_clipped > 0.01:
            flags.append(f"{self.ratio.share_clipped:.1%} of the weights were clipped")
        if self.coverage.share_outside > FAR_OUTSIDE:
            flags.append(
                f"{self.coverage.share_outside:.1%} of the target lies outside the "
                "calibration data, where no weight and no bound can speak"
            )
        return tuple(flags)

    @property
    def unreliable(self) -> bool:
        """Whether anything is flagged."""
        return bool(self.flags)

    def __str__(self) -> str:
        lines = [
            f"Shift from {self.n_calibration} calibration to {self.n_target} target "
            "rows",
            *_ratio_lines(self.ratio),
            f"  d₂ with own temperatures per cluster     "
            f"{self.clusters.remaining:9.3f}",
            f"  target outside the calibration data      "
            f"{self.coverage.share_outside:9.1%}",
            *_domain_lines(self.domains),
            *_bound_lines(self.bounds),
        ]
        flags = [f"  ! {flag}" for flag in self.flags] or ["  nothing to worry about"]
        return "\n".join([*lines, *flags])


def shift_report(
    calibration: Any,
    target: Any,
    *,
    sample_domain: np.ndarray | None = None,
    losses: np.ndarray | None = None,
    estimator: str = "discriminator",
    n_clusters: int = 8,
    max_weight: float = 50.0,
    random_state: int = 0,
) -> ShiftReport:
    """Compare calibration data with unlabelled target data.

    Parameters
    ----------
    calibration : (n, d) features, or an archive; of an archive the domains, and the
        losses of its logits at temperature one, are used too.
    target : (m, d) features, or an archive, of which only the features are read.
    sample_domain : (n,) domains of the calibration rows.
    losses : (n,) losses of the calibration rows at one fixed temperature.
    estimator, max_weight, random_state : see `density_ratio`.
    n_clusters : regions used for coverage and for the decomposition of d₂.

    Returns
    -------
    ShiftReport, to print or to read field by field.

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([1.0, 1.0, 1.0])
    >>> seen, unseen = data.select("site-0", "site-1"), data.select("site-2")
    >>> report = ch.shift.shift_report(seen, unseen)
    >>> len(report.domains), report.coverage.share_outside > 0.1
    (2, True)
    """
    features = feature_rows(calibration, "calibration")
    new = feature_rows(target, "target", features.shape[1], "calibration")
    domains = sample_domain
    if domains is None:
        domains = getattr(calibration, "domains", None)
    if domains is not None:
        domains = check_domains(domains, len(features))
    if losses is None:
        losses = _archive_losses(calibration)
    ratio = density_ratio(
        features,
        new,
        estimator=estimator,
        max_weight=max_weight,
        random_state=random_state,
    )
    regions = find_regions(features, n_clusters=n_clusters, random_state=random_state)
    return ShiftReport(
        n_calibration=len(features),
        n_target=len(new),
        ratio=ratio,
        clusters=decompose_divergence(ratio.weights, regions.assign(features)[0]),
        coverage=coverage(new, regions),
        domains={} if domains is None else domain_sample_sizes(ratio.weights, domains),
        bounds=None if losses is None else transfer_bounds(ratio.weights, losses),
    )


def _archive_losses(calibration: Any) -> np.ndarray | None:
    logits = getattr(calibration, "logits", None)
    labels = getattr(calibration, "labels", None)
    if logits is None or labels is None:
        return None
    return log_loss_rows(logits, labels, 1.0)


def _ratio_lines(ratio: DensityRatio) -> list[str]:
    share = ratio.effective_sample_size / len(ratio.weights)
    return [
        f"  discriminator AUROC (0.5: none visible)  {ratio.auroc:9.3f}",
        f"  variance of the weights, Var(w)          {ratio.variance:9.3f}",
        f"  Rényi divergence d₂ = 1 + Var(w)         {ratio.divergence:9.3f}",
        f"  effective sample size                    "
        f"{ratio.effective_sample_size:9.1f}  ({share:.0%} of the rows)",
        f"  weights clipped                          {ratio.share_clipped:9.1%}",
    ]


def _domain_lines(domains: dict) -> list[str]:
    return [
        f"  domain {domain}: effective share {share:.0%}, mean weight {weight:.2f}"
        for domain, (share, weight) in domains.items()
    ]


def _bound_lines(bounds: TransferBounds | None) -> list[str]:
    if bounds is None:
        return []
    return [
        f"  loss moves by an estimated               {bounds.gap:9.3f}",
        f"    at most (centred)                      {bounds.centred:9.3f}",
        f"    at most (Cauchy-Schwarz)               {bounds.cauchy_schwarz:9.3f}",
        f"    at most (arithmetic mean)              {bounds.arithmetic_mean:9.3f}",
    ]
