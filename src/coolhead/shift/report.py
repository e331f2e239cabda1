"""How far the loss can move from the calibration domains to a target.

With w = dP_T/dP_C and supp(P_T) inside supp(P_C), the gap is

    |E_C L - E_T L| = |E_C (1 - w) L|
                    <= sqrt(E_C (1 - w)² · E_C L²)      Cauchy-Schwarz
                    <= (E_C (1 - w)² + E_C L²) / 2      arithmetic mean

and E_C (1 - w)² = Var_C(w) = d₂(P_T‖P_C) - 1. Because E_C (1 - w) = 0 the loss may
be centred first, which never loosens the bound. All of it concerns the loss at one
fixed temperature, not the calibration error after a temperature was chosen.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from coolhead.numerics.checks import check_domains
from coolhead.numerics.softmax import log_loss_rows
from coolhead.shift.clusters import Coverage, coverage, feature_rows, find_regions
from coolhead.shift.ratio import DensityRatio, density_ratio, domain_sample_sizes


@dataclass(frozen=True)
class TransferBounds:
    """The gap estimated by the weights, and three upper bounds on it.

    Attributes
    ----------
    gap : float
        |E_C (1 - w) L|.
    centred : float
        sqrt(Var(w) Var(L)), the tightest of the three.
    cauchy_schwarz : float
        sqrt(E(1 - w)² E L²).
    arithmetic_mean : float
        (E(1 - w)² + E L²)/2. It depends on the unit of the loss.
    mean_weight : float
        E_C w. Below one, that much of the target mass lies where the calibration
        domains have none, which no bound covers.

    Examples
    --------
    >>> from coolhead.shift import transfer_bounds
    >>> bounds = transfer_bounds([0.5, 1.5], [1.0, 3.0])
    >>> bounds.gap <= bounds.centred <= bounds.cauchy_schwarz <= bounds.arithmetic_mean
    True
    """

    gap: float
    centred: float
    cauchy_schwarz: float
    arithmetic_mean: float
    mean_weight: float


def transfer_bounds(
    weights: np.ndarray, losses: np.ndarray, *, mass: np.ndarray | None = None
) -> TransferBounds:
    """Bound the change of the mean loss from the calibration domains to the target.

    Parameters
    ----------
    weights : array-like of shape (n_samples,)
        Ratios dP_T/dP_C at the calibration rows.
    losses : array-like of shape (n_samples,)
        Losses of the calibration rows at one fixed temperature.
    mass : array-like of shape (n_samples,), default=None
        Probability of each row under P_C, equal by default.

    Returns
    -------
    TransferBounds

    Examples
    --------
    >>> from coolhead.shift import transfer_bounds
    >>> bounds = transfer_bounds([0.5, 1.5], [1.0, 3.0])
    >>> bounds.gap, bounds.centred
    (0.5, 0.5)
    """
    weights, losses = np.asarray(weights, float), np.asarray(losses, float)
    if weights.ndim != 1 or weights.shape != losses.shape:
        raise ValueError(
            f"losses has shape {losses.shape}, weights {weights.shape}; wanted one "
            "loss per weight, (n,)"
        )

    def mean(values: np.ndarray) -> float:
        return float(np.average(values, weights=mass))

    shift, square = mean((1 - weights) ** 2), mean(losses**2)
    # The centred form needs E w = 1; without it, what is missing stays in the bound.
    spread = mean((losses - mean(losses)) ** 2)
    missing = abs(1 - mean(weights)) * abs(mean(losses))
    return TransferBounds(
        gap=abs(mean((1 - weights) * losses)),
        centred=float(np.sqrt(shift * spread)) + missing,
        cauchy_schwarz=float(np.sqrt(shift * square)),
        arithmetic_mean=(shift + square) / 2,
        mean_weight=mean(weights),
    )


FAR_OUTSIDE = 0.10


@dataclass(frozen=True)
class ShiftReport:
    """What the features show of the shift from calibration to target.

    Attributes
    ----------
    n_calibration, n_target : int
        Numbers of rows.
    ratio : DensityRatio
        With Var(w), d₂, effective sample size, AUROC, clipping.
    coverage : Coverage
        Of the target by the calibration clusters.
    domains : dict
        Of domain to (effective share of its rows, mean weight), empty if unknown.
    bounds : TransferBounds or None
        On the change of the loss, None without losses.

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
    coverage: Coverage
    domains: dict
    bounds: TransferBounds | None

    @property
    def flags(self) -> tuple[str, ...]:
        """Sentences about what makes the numbers unreliable; empty if nothing does."""
        flags = [f"weights unreliable: {reason}" for reason in self.ratio.reasons]
        if self.ratio.share_clipped > 0.01:
            flags.append(f"{self.ratio.share_clipped:.1%} of the weights were clipped")
        if self.coverage.share_outside > FAR_OUTSIDE:
            flags.append(
                f"{self.coverage.share_outside:.1%} of the target lies outside the "
                "calibration data, which no weight and no bound covers"
            )
        return tuple(flags)

    @property
    def unreliable(self) -> bool:
        """Whether anything is flagged."""
        return bool(self.flags)

    def __str__(self) -> str:
        ratio, outside = self.ratio, self.coverage.share_outside
        share = ratio.effective_sample_size / len(ratio.weights)
        values = {
            "discriminator AUROC (0.5: none visible)": f"{ratio.auroc:9.3f}",
            "variance of the weights, Var(w)": f"{ratio.variance:9.3f}",
            "Rényi divergence d₂ = 1 + Var(w)": f"{ratio.divergence:9.3f}",
            "effective sample size": f"{ratio.effective_sample_size:9.1f}  "
            f"({share:.0%} of the rows)",
            "weights clipped": f"{ratio.share_clipped:9.1%}",
            "target outside the calibration data": f"{outside:9.1%}",
        }
        for domain, (share, weight) in self.domains.items():
            values[f"domain {domain}"] = (
                f"effective share {share:.0%}, mean weight {weight:.2f}"
            )
        if self.bounds is not None:
            values |= {
                "loss moves by an estimated": f"{self.bounds.gap:9.3f}",
                "  at most (centred)": f"{self.bounds.centred:9.3f}",
                "  at most (Cauchy-Schwarz)": f"{self.bounds.cauchy_schwarz:9.3f}",
                "  at most (arithmetic mean)": f"{self.bounds.arithmetic_mean:9.3f}",
            }
        lines = [
            f"Shift from {self.n_calibration} calibration to {self.n_target} target "
            "rows",
            *(f"  {name:<41}{value}" for name, value in values.items()),
        ]
        flags = [f"  ! {flag}" for flag in self.flags] or ["  no warnings"]
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
    calibration : array-like of shape (n_samples, n_features) or DomainArchive
        Features; of an archive the domains, and the losses of its logits at
        temperature one, are used too.
    target : array-like of shape (n_target, n_features) or DomainArchive
        Of an archive only the features are read.
    sample_domain : array-like of shape (n_samples,), default=None
        Domains of the calibration rows.
    losses : array-like of shape (n_samples,), default=None
        Losses of the calibration rows at one fixed temperature.
    estimator : str, default="discriminator"
        See `density_ratio`.
    max_weight, random_state : float, int
        See `density_ratio`.
    n_clusters : int, default=8
        Regions used for coverage.

    Returns
    -------
    ShiftReport
        To print or to read field by field.

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
    logits, labels = (getattr(calibration, name, None) for name in ("logits", "labels"))
    if losses is None and logits is not None and labels is not None:
        losses = log_loss_rows(logits, labels, 1.0)
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
        coverage=coverage(new, regions),
        domains={} if domains is None else domain_sample_sizes(ratio.weights, domains),
        bounds=None if losses is None else transfer_bounds(ratio.weights, losses),
    )
