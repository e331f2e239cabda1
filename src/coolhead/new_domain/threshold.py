"""When not to answer, in a domain whose accuracy is not quite known."""

from dataclasses import dataclass

import numpy as np

from coolhead.new_domain.posterior import expit, logit, shift_to

SMALLEST_ANSWERED = 20


@dataclass(frozen=True)
class Threshold:
    """Answer where the calibrated confidence is at least this.

    Attributes
    ----------
    confidence : lowest confidence to answer at; None where none will do.
    share : share of the rows that are answered.
    accuracy : of the answered rows, expected; at_least : with `level` certainty.
    wanted, level : what was asked for.

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([1.0, 1.5, 2.0, 1.5])
    >>> seen, unseen = data.select("site-0", "site-1", "site-2"), data.select("site-3")
    >>> cal = ch.TemperatureScaling().fit(seen.logits, seen.labels)
    >>> known = ch.new_domain.learn_evidence(
    ...     cal, seen.logits, seen.labels, sample_domain=seen.domains
    ... )
    >>> there = ch.NewDomain(cal, unseen.logits, evidence=known)
    >>> threshold = there.threshold(accuracy=0.8)
    >>> threshold.wanted, 0 < threshold.share <= 1
    (0.8, True)
    """

    confidence: float | None
    share: float
    accuracy: float
    at_least: float
    wanted: float
    level: float

    def __str__(self) -> str:
        if self.confidence is None:
            return (
                f"{self.wanted:.0%} cannot be had here with {self.level:.0%} certainty:"
                f" even the surest rows are expected to be right in {self.accuracy:.0%}"
                f" and at least {self.at_least:.0%}; more labels would tell more"
            )
        return (
            f"answer at confidence {self.confidence:.3f} or more: {self.share:.0%} of "
            f"the rows, right in {self.accuracy:.0%}, at least {self.at_least:.0%} with"
            f" {self.level:.0%} certainty"
        )


def find_threshold(
    confidence: np.ndarray, expected: float, lowest: float, wanted: float, level: float
) -> Threshold:
    """The lowest confidence above which rows are right as often as wanted.

    confidence : (n,) of the new domain's calibrator; expected, lowest : the accuracy
        of all rows, and the one it exceeds with certainty `level`.
    """
    if not 0 < wanted < 1:
        raise ValueError(f"accuracy is {wanted}; wanted a share between 0 and 1")
    ordered = np.sort(confidence)[::-1].astype(np.float64)
    counts = np.arange(1, len(ordered) + 1)
    likely, at_least = (
        np.cumsum(expit(logit(ordered) + shift_to(ordered, accuracy))) / counts
        for accuracy in (expected, lowest)
    )
    # Only the last of equal confidences can be told from the next.
    last = np.append(ordered[1:] < ordered[:-1], True)
    least = min(SMALLEST_ANSWERED, len(ordered))
    enough = np.flatnonzero((at_least >= wanted) & last & (counts >= least))
    at = int(enough[-1]) if len(enough) else least - 1
    found = float(ordered[at]) if len(enough) else None
    share = (at + 1) / len(ordered) if len(enough) else 0.0
    return Threshold(
        found, share, float(likely[at]), float(at_least[at]), wanted, level
    )
