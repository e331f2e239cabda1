"""Exact tests of counts against what the calibration domains showed.

Every p-value is valid for "the new rows are like those of one of the domains": it is
the largest of the p-values against each of them. That a domain is known only from a
sample is part of the test (Fisher's, one-sided).
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from coolhead.display import Summary, as_html, as_text
from coolhead.monitor.expected import Expected, Seen

ROWS_PER_GROUP = 25
NO_EXPECTATION = "what the calibration domains show is not known"
VERDICTS = {True: "drift", False: "no drift", None: "cannot tell"}


class Finding(NamedTuple):
    """Result of one of the tests.

    Attributes
    ----------
    kind : {"features", "confidence", "labels"}
        Rows outside the calibration data; rows less confident than the median
        calibration row; correct predictions at the same confidence.
    alarm : bool or None
        None if it cannot tell.
    p_value : float or None
        None if it cannot tell.
    n_rows : int
        Rows it rests on.
    found : float or None
        Share of rows outside, share of unsure rows, calibration error; None without
        rows.
    text : str
        All of this as text, or why it cannot tell.

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

    def __repr__(self) -> str:
        return f"{self.kind}: {VERDICTS[self.alarm]}; {self.text}"

    def _repr_html_(self) -> str:
        return as_html(Summary(repr(self)))


class DriftSignal(NamedTuple):
    """Verdict of a monitor, with the findings it rests on; as a sentence by `str`.

    Attributes
    ----------
    alarm : bool or None
        True if some finding raises it. False only if features or labels were checked
        and nothing raised it; else None: cannot tell. Confidence alone can raise an
        alarm, but is never enough to say that nothing drifted.
    findings : tuple of Finding

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([1.0, 1.5, 2.0])
    >>> cal = ch.TemperatureEnsemble()
    >>> cal = cal.fit(data.logits, data.labels, features=data.features)
    >>> monitor = ch.DriftMonitor.for_calibrator(cal, data.features, data.domains)
    >>> signal = monitor.check()    # no batch was counted yet
    >>> print(signal.alarm, [finding.kind for finding in signal.findings])
    None ['features', 'confidence', 'labels']
    """

    alarm: bool | None
    findings: tuple[Finding, ...]

    def of(self, kind: str) -> Finding:
        """Return the finding of one kind."""
        return next(found for found in self.findings if found.kind == kind)

    def __str__(self) -> str:
        shown = [found for found in self.findings if found.alarm or not self.alarm]
        texts = "; ".join(found.text for found in shown)
        verdict = "cannot tell whether the data drifted"
        if self.alarm is not None:
            verdict = "drift detected" if self.alarm else "no drift detected"
        return f"{verdict}: {texts}"

    def _summary(self) -> Summary:
        rows = [(f.kind, VERDICTS[f.alarm], f.text) for f in self.findings]
        return Summary(f"DriftSignal: {VERDICTS[self.alarm]}", (), rows)

    def __repr__(self) -> str:
        return as_text(self._summary())

    def _repr_html_(self) -> str:
        return as_html(self._summary())


# A finding before the false alarm rate is shared out, and the p-value of the most
# extreme outcome; None: there is nothing to test.
Test = tuple[Finding, float | None]


def judge(
    counts: dict[str, Any], expected: Expected, false_alarm_rate: float
) -> DriftSignal:
    """Share the false alarm rate between the tests that have something to test."""
    tests = [
        examine(counts, expected)
        for examine in (examine_features, examine_confidence, examine_labels)
    ]
    possible = sum(best is not None for _, best in tests)
    level = false_alarm_rate / max(possible, 1)
    findings = tuple(_decide(*test, level) for test in tests)
    if any(found.alarm for found in findings):
        return DriftSignal(True, findings)
    checked = [found.alarm for found in findings if found.kind != "confidence"]
    return DriftSignal(False if False in checked else None, findings)


def _decide(finding: Finding, best: float | None, level: float) -> Finding:
    if finding.p_value is None or best is None:
        return finding
    if best >= level:
        # Whatever these rows had shown, there would have been no alarm.
        text = f"{finding.text}, too few rows or too wide a range to tell"
        return finding._replace(p_value=None, text=text)
    text = f"{finding.text} (p = {finding.p_value:.2g})"
    return finding._replace(alarm=bool(finding.p_value < level), text=text)


def _unchecked(kind: str, n_rows: int, found: float | None, why: str) -> Test:
    return Finding(kind, None, None, n_rows, found, f"{kind} not checked ({why})"), None


def examine_features(counts: dict[str, Any], expected: Expected) -> Test:
    """Do more rows lie outside, or crowd in the middle, than of any domain?"""
    outside, near, checked, rows = (
        int(counts[name]) for name in ("n_outside", "n_near", "n_checked", "n_rows")
    )
    share = outside / checked if checked else None
    if not checked or not expected.outside:
        unknown = f"none of {rows} rows could be compared with calibration features"
        reason = NO_EXPECTATION if checked else unknown
        return _unchecked("features", checked, share, reason)
    far, crowded = list(expected.outside.values()), list(expected.inside.values())
    directions = [(outside, far), (near, crowded)] if crowded else [(outside, far)]
    tails = [largest_tail(found, checked, known) for found, known in directions]
    best = [largest_tail(checked, checked, known) for _, known in directions]
    text = f"{share:.1%} of {checked} rows lie outside the calibration data"
    if expected.reach > 1:
        text += f" by more than {expected.reach:.3g} radii"
    text += f", at most {max(map(_share, far)):.1%} expected"
    if tails[-1] < tails[0]:
        text += (
            f", and {near / checked:.1%} in the middle of its clusters, at most "
            f"{max(map(_share, crowded)):.1%} expected"
        )
    if checked < rows:
        text += f", {rows - checked} rows not checked"
    finding = Finding("features", None, either(*tails), checked, share, text)
    return finding, either(*best)


def examine_confidence(counts: dict[str, Any], expected: Expected) -> Test:
    """Are rows less, or more, confident than in every calibration domain?"""
    unsure, rows = int(counts["n_unsure"]), int(counts["n_rows"])
    if not rows or not expected.unsure:
        reason = NO_EXPECTATION if rows else "no row was seen"
        return _unchecked("confidence", rows, None, reason)
    known = list(expected.unsure.values())
    directions = [(unsure, known), (rows - unsure, list(map(_opposite, known)))]
    tails = [largest_tail(found, rows, seen) for found, seen in directions]
    best = [largest_tail(rows, rows, seen) for _, seen in directions]
    shares = [f"{_share(seen):.1%}" for seen in sorted(known, key=_share)]
    mean = float(counts["confidence_sum"]) / rows
    text = (
        f"{unsure / rows:.1%} of {rows} rows are less confident than "
        f"{expected.middle:.3g}, {' to '.join(dict.fromkeys([shares[0], shares[-1]]))} "
        f"expected (mean confidence {mean:.3g})"
    )
    finding = Finding("confidence", None, either(*tails), rows, unsure / rows, text)
    return finding, either(*best)


def examine_labels(counts: dict[str, Any], expected: Expected) -> Test:
    """Are predictions of equal confidence correct less, or more, often than expected?

    Expected is what the confidence says, or what some calibration domain shows.
    """
    rows, sums, right = (
        np.asarray(counts[f"bin_{name}"], float)
        for name in ("counts", "confidence", "correct")
    )
    labelled, error = int(rows.sum()), calibration_error(counts)
    if error is None:
        return _unchecked("labels", 0, None, "none given")
    groups = join_bins(rows)
    rows, right, promised = (
        np.bincount(groups, values) for values in (rows, right, sums)
    )
    known: list[Any] = [promised / rows]
    for correct, n in expected.right.values():
        known.append((np.bincount(groups, correct), np.bincount(groups, n)))
    wrong = [_opposite(seen) for seen in known]
    # Fewer right answers than in every domain is drift, even if confidence fell, too.
    totals = [(sum(n) - sum(correct), sum(n)) for correct, n in expected.right.values()]

    def p_value(right: np.ndarray) -> float:
        wrong_answers = rows - right
        tails = [
            max(combined_tail(wrong_answers, rows, seen) for seen in wrong),
            max(combined_tail(right, rows, seen) for seen in known),
        ]
        if totals:
            tails.append(largest_tail(wrong_answers.sum(), labelled, totals))
        return either(*tails)

    text = (
        f"{labelled} labelled rows are right {right.sum() / labelled:.1%} of the time "
        f"where {promised.sum() / labelled:.1%} was promised "
        f"(calibration error {error:.1%})"
    )
    if totals:
        lowest = min(1 - _share(seen) for seen in totals)
        text += f", at least {lowest:.1%} in calibration domains"
    finding = Finding("labels", None, p_value(right), labelled, error, text)
    return finding, min(p_value(np.zeros_like(rows)), p_value(rows))


def calibration_error(counts: dict[str, Any]) -> float | None:
    """Return the ECE of the labelled rows, None without any."""
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

    Parameters
    ----------
    found, rows : int or ndarray
    seen : float or tuple
        A share, or (found, rows) of a sample of the same kind. Given how many both
        hold together, the number in the sample is hypergeometric.
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

    Groups without rows in the reference are left out. Correct predictions of differing
    confidence vary less than a binomial with their mean (Hoeffding 1956), so the test
    is conservative.
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
