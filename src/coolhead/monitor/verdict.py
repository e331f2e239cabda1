"""Exact tests of counts against what the calibration domains showed.

Every p-value is valid for "the new rows are like those of one of the domains": it is
the largest of the p-values against each of them. That a domain is known only from a
sample is part of the test (Fisher's, one-sided).
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from coolhead.monitor.expected import Expected, Seen

ROWS_PER_GROUP = 25
NO_EXPECTATION = "what the calibration domains show is not known"


class Finding(NamedTuple):
    """What one kind of observation says.

    Attributes
    ----------
    kind : "features" (rows outside the calibration data), "confidence" (rows less
        sure than the middle calibration row) or "labels" (right answers at the same
        confidence).
    alarm : True or False; None if it cannot tell.
    p_value : None if it cannot tell.
    n_rows : rows it rests on.
    found : share of rows outside, share of unsure rows, calibration error; None
        without rows.
    text : all of this in words, or why it cannot tell.

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([1.0, 1.5, 2.0])
    >>> cal = ch.TemperatureEnsemble()
    >>> cal = cal.fit(data.logits, data.labels, features=data.features)
    >>> monitor = ch.DriftMonitor.for_calibrator(cal, data.features, data.domains)
    >>> monitor.update(cal.details(data.logits, data.features + 20))
    >>> finding = monitor.check().of("features")
    >>> finding.alarm, finding.n_rows, finding.found
    (True, 900, 1.0)
    """

    kind: str
    alarm: bool | None
    p_value: float | None
    n_rows: int
    found: float | None
    text: str


class DriftSignal(NamedTuple):
    """What a monitor concludes, with the findings, and in a sentence by `str`.

    alarm : True if some finding raises it. False only if features or labels were
        checked and nothing raised it; else None: cannot tell. Confidence alone can
        raise an alarm, but never says that all is well.

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([1.0, 1.5, 2.0])
    >>> cal = ch.TemperatureEnsemble()
    >>> cal = cal.fit(data.logits, data.labels, features=data.features)
    >>> monitor = ch.DriftMonitor.for_calibrator(cal, data.features, data.domains)
    >>> signal = monitor.check()    # nothing was seen yet
    >>> print(signal.alarm, [finding.kind for finding in signal.findings])
    None ['features', 'confidence', 'labels']
    """

    alarm: bool | None
    findings: tuple[Finding, ...]

    def of(self, kind: str) -> Finding:
        """The finding of one kind."""
        return next(found for found in self.findings if found.kind == kind)

    def __str__(self) -> str:
        if self.alarm:
            told = [found.text for found in self.findings if found.alarm]
            return f"this is not the data you calibrated for: {'; '.join(told)}"
        verdict = "cannot tell whether this is the data you calibrated for"
        if self.alarm is False:
            verdict = "no sign of other data than was calibrated for"
        return f"{verdict}: {'; '.join(found.text for found in self.findings)}"


# A finding before the false alarm rate is shared out, and the p-value of the most
# extreme outcome; None: there is nothing to test.
Test = tuple[Finding, float | None]


def _nothing(kind: str, n_rows: int, found: float | None, why: str) -> Test:
    return Finding(kind, None, None, n_rows, found, f"{kind} not checked ({why})"), None


def judge(
    counts: dict[str, Any], expected: Expected, false_alarm_rate: float
) -> DriftSignal:
    """Share the false alarm rate between the tests that have something to test."""
    tests = [
        examine_features(counts, expected),
        examine_confidence(counts, expected),
        examine_labels(counts, expected),
    ]
    possible = sum(best is not None for _, best in tests)
    findings = tuple(
        _decide(test, false_alarm_rate / max(possible, 1)) for test in tests
    )
    if any(found.alarm for found in findings):
        return DriftSignal(True, findings)
    checked = any(
        found.alarm is False and found.kind != "confidence" for found in findings
    )
    return DriftSignal(False if checked else None, findings)


def _decide(test: Test, level: float) -> Finding:
    finding, best = test
    if finding.p_value is None or best is None:
        return finding
    if best >= level:
        # Whatever these rows had shown, there would have been no alarm.
        text = f"{finding.text}, too few rows or too wide a range to tell"
        return finding._replace(p_value=None, text=text)
    text = f"{finding.text} (p = {finding.p_value:.2g})"
    return finding._replace(alarm=bool(finding.p_value < level), text=text)


def examine_features(counts: dict[str, Any], expected: Expected) -> Test:
    """Do more rows lie outside, or crowd in the middle, than of any domain?"""
    outside, near, checked, rows = (
        int(counts[name]) for name in ("n_outside", "n_near", "n_checked", "n_rows")
    )
    share = outside / checked if checked else None
    if not checked or not expected.outside:
        unknown = f"none of {rows} rows could be compared with calibration features"
        reason = NO_EXPECTATION if checked else unknown
        return _nothing("features", checked, share, reason)
    far, crowded = list(expected.outside.values()), list(expected.inside.values())
    directions = [(outside, far), (near, crowded)] if crowded else [(outside, far)]
    tails = [largest_tail(found, checked, known) for found, known in directions]
    best = [largest_tail(checked, checked, known) for _, known in directions]
    text = f"{share:.1%} of {checked} rows lie outside the calibration data"
    if expected.reach > 1:
        text += f" by more than {expected.reach:.3g} radii"
    text += f", at most {max(map(_share, far)):.1%} expected"
    if tails[-1] < tails[0]:
        most = max(map(_share, crowded))
        text += (
            f", and {near / checked:.1%} in the middle of its clusters, at most "
            f"{most:.1%} expected"
        )
    if checked < rows:
        text += f", {rows - checked} rows not checked"
    finding = Finding("features", None, either(*tails), checked, share, text)
    return finding, either(*best)


def examine_confidence(counts: dict[str, Any], expected: Expected) -> Test:
    """Are rows less sure, or surer, than in every calibration domain?"""
    unsure, rows = int(counts["n_unsure"]), int(counts["n_rows"])
    if not rows or not expected.unsure:
        reason = NO_EXPECTATION if rows else "no row was seen"
        return _nothing("confidence", rows, None, reason)
    known = list(expected.unsure.values())
    sure = [_opposite(seen) for seen in known]
    shares = [f"{_share(seen):.1%}" for seen in sorted(known, key=_share)]
    mean = float(counts["confidence_sum"]) / rows
    less, surer = ((unsure, known), (rows - unsure, sure))
    p_value = either(*(largest_tail(n, rows, seen) for n, seen in (less, surer)))
    text = (
        f"{unsure / rows:.1%} of {rows} rows are less sure than {expected.middle:.3g}, "
        f"{' to '.join(dict.fromkeys([shares[0], shares[-1]]))} expected "
        f"(mean confidence {mean:.3g})"
    )
    finding = Finding("confidence", None, p_value, rows, unsure / rows, text)
    best = either(*(largest_tail(rows, rows, seen) for seen in (known, sure)))
    return finding, best


def examine_labels(counts: dict[str, Any], expected: Expected) -> Test:
    """Are answers of equal confidence right less, or more, often than they should be?

    They should be as often as the confidence says, or as in some calibration domain.
    """
    rows, sums, right = (
        np.asarray(counts[f"bin_{name}"], float)
        for name in ("counts", "confidence", "correct")
    )
    labelled, error = int(rows.sum()), calibration_error(counts)
    if error is None:
        return _nothing("labels", 0, None, "none given")
    groups = join_bins(rows)
    rows, right, promised = (
        np.bincount(groups, values) for values in (rows, right, sums)
    )
    known: list[Any] = [promised / rows]
    for correct, n in expected.right.values():
        known.append((np.bincount(groups, correct), np.bincount(groups, n)))
    wrong = [_opposite(seen) for seen in known]

    def p_value(right: np.ndarray, wrong_answers: np.ndarray) -> float:
        return either(
            max(combined_tail(wrong_answers, rows, seen) for seen in wrong),
            max(combined_tail(right, rows, seen) for seen in known),
        )

    text = (
        f"{labelled} labelled rows are right {right.sum() / labelled:.1%} of the time "
        f"where {promised.sum() / labelled:.1%} was promised "
        f"(calibration error {error:.1%})"
    )
    p_found = p_value(right, rows - right)
    finding = Finding("labels", None, p_found, labelled, error, text)
    none = np.zeros_like(rows)
    return finding, min(p_value(none, rows), p_value(rows, none))


def calibration_error(counts: dict[str, Any]) -> float | None:
    """ECE of the labelled rows, None without any."""
    labelled = float(counts["bin_counts"].sum())
    gaps = np.abs(counts["bin_correct"] - counts["bin_confidence"])
    return float(gaps.sum()) / labelled if labelled else None


def join_bins(rows: np.ndarray) -> np.ndarray:
    """Group of each bin, (15,): neighbours joined until each has 25 rows, or all one.

    p-values of a handful of rows are coarse, and a sum of coarse ones sees nothing.
    """
    groups, own = np.zeros(len(rows), np.intp), 0.0
    for place in range(1, len(rows)):
        own += rows[place - 1]
        full = own >= ROWS_PER_GROUP and rows[place:].sum() >= ROWS_PER_GROUP
        groups[place] = groups[place - 1] + full
        own = 0.0 if full else own
    return groups


def tail(found: Any, rows: Any, seen: Any) -> Any:
    """Chance of at least `found` among `rows` if they are like what was seen.

    seen : a share, or (found, rows) of a sample of the same kind. Given how many both
        hold together, the number in the sample is hypergeometric.
    All of them may be arrays.
    """
    from scipy.stats import binom, hypergeom

    if not isinstance(seen, tuple):
        return binom.sf(found - 1, rows, seen)
    before, size = seen
    return hypergeom.cdf(before, rows + size, found + before, size)


def largest_tail(found: float, rows: float, known: Iterable[Seen]) -> float:
    """`tail` against the domain that explains the rows best."""
    return max(float(tail(found, rows, seen)) for seen in known)


def combined_tail(found: np.ndarray, rows: np.ndarray, seen: Any) -> float:
    """One p-value of all groups, by Fisher's sum of logarithms.

    Groups that the reference has no rows in say nothing. Right answers of differing
    confidence vary less than a binomial with their mean (Hoeffding 1956), so taking
    them for one is on the safe side.
    """
    from scipy.stats import chi2

    if isinstance(seen, tuple):
        used = seen[1] > 0
        found, rows, seen = found[used], rows[used], (seen[0][used], seen[1][used])
    if not len(found):
        return 1.0
    tails = tail(found, rows, seen)
    logs = np.log(np.maximum(tails, np.finfo(float).tiny))
    return float(chi2.sf(-2 * logs.sum(), 2 * len(found)))


def either(*p_values: float) -> float:
    """One p-value of several directions: the smallest, times their number."""
    return min(1.0, len(p_values) * min(p_values))


def _share(seen: Seen) -> float:
    return seen[0] / max(seen[1], 1) if isinstance(seen, tuple) else seen


def _opposite(seen: Any) -> Any:
    return (seen[1] - seen[0], seen[1]) if isinstance(seen, tuple) else 1 - seen
