"""The paper's claims, each with a verdict on a run and the interval it rests on."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy.stats import spearmanr

from coolhead.lab.tables.by_split import PAPER_METHODS, best_of_each_split
from coolhead.lab.tables.comparison import (
    DRAWS,
    mean_interval,
    percentiles,
    ratio_difference,
)
from coolhead.lab.tables.paper import Published
from coolhead.metrics import Interval
from coolhead.report.tables import RunScores, column_mean, label, split_means

HOLDS, FAILS, UNCLEAR, UNTESTED = "holds", "fails", "unclear", "not tested here"
RIVALS = ("source-only", "transcal", "wts")
MINOR = 1.0
CLEAR_SHARE, CLEAR_SIGMAS = 75.0, 2.0


class Claim(NamedTuple):
    """A claim of the paper, the numbers here, a verdict, and the paper's numbers.

    A count has no verdict.
    """

    claim: str
    numbers: str
    verdict: str = ""
    paper: str = ""

    def __str__(self) -> str:
        if not self.verdict:
            return f"{self.claim}: {self.numbers}."
        shown = self.verdict.capitalize()
        shown = f"**{shown}**" if self.verdict == FAILS else shown
        return f"{shown}: {self.claim} ({self.numbers})."


def check_findings(
    scores: RunScores,
    sensitivity: pl.DataFrame,
    shift: pl.DataFrame | None = None,
    *,
    order: str | None = None,
    published: Published | None = None,
    several_sources: RunScores | None = None,
) -> Iterator[Claim]:
    """Check every claim of the paper that a run can say something about.

    Intervals are 95 % percentile intervals over resamples of whole splits. A claim
    holds where its interval lies on the claimed side, fails where it lies on the
    other side, and is unclear where it covers the border.

    Parameters
    ----------
    scores : RunScores
        Of one classifier.
    sensitivity, shift : DataFrame
        The run's tables of those names.
    order : str, default=None
        What the order of the targets means, if it means something.
    published : Published, default=None
        The paper's numbers for the same data.
    several_sources : RunScores, default=None
        Of the run trained and calibrated on all domains but the target.

    Yields
    ------
    Claim
    """
    present = [name for name in PAPER_METHODS if name in scores.methods]
    if not {"source-only", "uncalibrated"} <= set(scores.methods) or not present:
        return
    means = {name: split_means(scores, name) for name in scores.methods}
    for rival in RIVALS:
        for name in present if rival in means else ():
            yield _lower(means, name, rival, published)
    if published is not None and "ensemble" in present:
        yield from _headlines(scores, means, published)
    yield from _clear_in_most_splits(scores, published)
    yield _source_harms(means, published)
    yield from _order_of_methods(means, present, published)
    for name in ("source-only", *present):
        yield _harm(means, name, published)
    yield from _noise(scores, present)
    yield from _accuracy_stays(scores, present)
    yield from _shape(scores, order)
    yield from _clusters_matter_little(sensitivity)
    yield from _less_variance(shift, means, scores.splits)
    if several_sources is not None:
        yield from _several_sources(scores, several_sources, published)


def _verdict(found: Interval, border: float = 0.0) -> str:
    """Whether an interval lies above a border."""
    if found.low > border:
        return HOLDS
    return FAILS if found.high < border else UNCLEAR


def _words(found: Interval, digits: int = 2) -> str:
    return (
        f"{found.estimate:.{digits}f} [{found.low:.{digits}f}, {found.high:.{digits}f}]"
    )


def _both(means: dict[str, np.ndarray], *names: str) -> list[np.ndarray]:
    """ECE by split of several methods, of the splits that all of them have."""
    columns = np.stack([means[name] for name in names])
    return list(columns[:, np.isfinite(columns).all(axis=0)])


def _printed(published: Published | None, *methods: str) -> str:
    """The paper's mean ECE of some methods, as text."""
    if published is None:
        return ""
    found = [published.by_target(name, "all") for name in methods]
    shown = [f"{value[0]:.2f}" for value in found if value is not None]
    if len(shown) < len(methods):
        return ""
    return f"{' to '.join(shown)} %{_network(*methods)}"


def _network(*methods: str) -> str:
    """A mark where the paper compares with networks that were adapted to the target."""
    return " (CDAN)" if {"transcal", "wts"} & set(methods) else ""


def _lower(
    means: dict[str, np.ndarray], name: str, rival: str, published: Published | None
) -> Claim:
    own, other = _both(means, name, rival)
    fall = mean_interval(other - own)
    return Claim(
        f"{label(name)} lowers the ECE against {label(rival)}",
        f"{other.mean():.2f} to {own.mean():.2f} %, by {_words(fall)} points, in "
        f"{int((own < other).sum())} of {len(own)} splits",
        _verdict(fall),
        _printed(published, rival, name),
    )


def _headlines(
    scores: RunScores, means: dict[str, np.ndarray], published: Published
) -> Iterator[Claim]:
    """The sizes that abstract and text of the paper name, all of the ensemble."""
    ensemble = published.by_target("ensemble", "all")
    for rival in RIVALS:
        printed = published.by_target(rival, "all")
        if rival not in means or printed is None or ensemble is None:
            continue
        size = printed[0] - ensemble[0]
        own, other = _both(means, "ensemble", rival)
        fall = mean_interval(other - own)
        yield Claim(
            f"the fall against {label(rival)} is at least as large as printed",
            f"{_words(fall)} points",
            _verdict(fall, size),
            f"{size:.2f} points{_network(rival)}",
        )
    ratios = [published.improvement_ratio(name) for name in ("ensemble", "transcal")]
    if None in ratios or "transcal" not in means:
        return
    size = 100 * (ratios[0] - ratios[1])  # pyright: ignore
    found = ratio_difference(scores, "ensemble", "transcal")
    if found is not None:
        points = Interval(100 * found.estimate, 100 * found.low, 100 * found.high)
        yield Claim(
            f"the improvement ratio is above {label('transcal')}'s by at least as much "
            "as printed",
            f"{_words(points, 0)} points",
            _verdict(points, size),
            f"{size:.0f} points{_network('transcal')}",
        )


def _clear_in_most_splits(
    scores: RunScores, published: Published | None
) -> Iterator[Claim]:
    """The best method of each split, against two standard deviations of the draws."""
    for rival in RIVALS:
        pairs = None
        if rival in scores.methods and "ece_sd" in scores.frame.columns:
            pairs = best_of_each_split(scores, rival)
        if pairs is None or pairs.filter(pl.col("ece_sd") > 0).is_empty():
            continue
        size = (pl.col("ece_mean_base") - pl.col("ece_mean")) / pl.col("ece_sd")
        clear = pairs.select("split", clear=100.0 * (size > CLEAR_SIGMAS))
        by_split = clear.group_by("split", maintain_order=True).mean()
        share = mean_interval(by_split["clear"].to_numpy())
        counts = () if published is None else published.sigma_counts(rival)
        printed = ""
        if counts:
            share_printed = 100 * sum(counts[-2:]) / sum(counts)
            printed = f"{share_printed:.0f} %{_network(rival)}"
        yield Claim(
            f"the best method of each split, chosen afterwards, is better than "
            f"{label(rival)} at 95 % confidence in at least {CLEAR_SHARE:.0f} % of "
            "the splits",
            f"{_words(share, 0)} %",
            _verdict(share, CLEAR_SHARE),
            printed,
        )


def _source_harms(means: dict[str, np.ndarray], published: Published | None) -> Claim:
    source, before = _both(means, "source-only", "uncalibrated")
    rise = mean_interval(source - before)
    return Claim(
        f"{label('source-only')} is worse than uncalibrated on average",
        f"{before.mean():.2f} to {source.mean():.2f} %, by {_words(rise)} points",
        _verdict(rise),
        _printed(published, "uncalibrated", "source-only"),
    )


def _order_of_methods(
    means: dict[str, np.ndarray], present: list[str], published: Published | None
) -> Iterator[Claim]:
    if {"ensemble", "set-level"} <= set(present):
        others = [name for name in present if name != "ensemble"]
        best = min(others, key=lambda name: np.nanmean(means[name]))
        own, other = _both(means, "ensemble", best)
        yield Claim(
            "the ensemble has the lowest mean ECE of the paper's methods",
            f"{label(best)}, the best of the others, minus the ensemble: "
            f"{_words(mean_interval(other - own))} points",
            _verdict(mean_interval(other - own)),
            _printed(published, "ensemble"),
        )
    for better in ("set-level", "nearest-cluster"):
        if {better, "regression"} <= set(present):
            own, other = _both(means, better, "regression")
            change = mean_interval(other - own)
            yield Claim(
                f"{label('regression')} has a higher mean ECE than {label(better)}",
                f"by {_words(change)} points",
                _verdict(change),
                _printed(published, better, "regression"),
            )


def _harm(
    means: dict[str, np.ndarray], name: str, published: Published | None
) -> Claim:
    own, before = _both(means, name, "uncalibrated")
    printed = None if published is None else published.splits_harmed(name)
    return Claim(
        f"splits in which {label(name)} is worse than uncalibrated",
        f"{int((own > before).sum())} of {len(own)}",
        paper="" if printed is None else "{} of {}".format(*printed),
    )


def _noise(scores: RunScores, present: list[str]) -> Iterator[Claim]:
    """Draws move the ECE of a split little, splits differ much."""
    found = scores.frame.filter(pl.col("method").is_in(present))
    if "ece_sd" not in found.columns or len(scores.splits) < 2:
        return
    sd = found["ece_sd"].to_numpy()
    yield Claim(
        "within a split the ECE of the draws varies by σ < 1 %",
        f"σ from {sd.min():.2f} to {sd.max():.2f} %",
        HOLDS if sd.max() < MINOR else FAILS,
    )
    columns = np.stack([split_means(scores, name) for name in present])
    drawn = columns[:, _splits_drawn(columns.shape[1])]
    excess = np.nanvar(drawn, axis=2).mean(axis=0) - np.mean(sd**2)
    estimate = float(np.nanvar(columns, axis=1).mean() - np.mean(sd**2))
    between = percentiles(estimate, excess)
    yield Claim(
        "the variance between splits is larger than that of the draws",
        f"by {_words(between)}",
        _verdict(between),
    )


def _splits_drawn(n_splits: int) -> np.ndarray:
    return np.random.default_rng(0).integers(n_splits, size=(DRAWS, n_splits))


def _accuracy_stays(scores: RunScores, present: list[str]) -> Iterator[Claim]:
    before = column_mean(scores.of("uncalibrated"), "accuracy")
    after = [column_mean(scores.of(name), "accuracy") for name in present]
    known = [value for value in after if value is not None]
    if before is not None and known:
        moved = max(abs(value - before) for value in known)
        yield Claim(
            "calibration does not change the accuracy",
            f"{before:.2f} %, changed by {moved:.2g} points at most",
            HOLDS if moved == 0 else FAILS,
        )


def _shape(scores: RunScores, order: str | None) -> Iterator[Claim]:
    """Low in the middle of the listed targets, high at both ends."""
    if order is None or "ensemble" not in scores.methods or len(scores.targets) < 3:
        return
    columns = []
    for target in scores.targets:
        own = scores.of("ensemble", target=target)
        found = own.group_by("split", maintain_order=True)
        columns.append(found.agg(pl.col("ece_mean").mean())["ece_mean"].to_numpy())
    estimates = [column.mean() for column in columns]
    drawn = [column[_splits_drawn(len(column))].mean(axis=1) for column in columns]
    lowest = np.argmin(drawn, axis=0)
    share = np.mean((lowest > 0) & (lowest < len(columns) - 1))
    listed = zip(scores.targets, estimates, strict=True)
    yield Claim(
        f"over the targets {order} the ensemble's ECE is lowest in the middle",
        ", ".join(f"{name} {value:.2f} %" for name, value in listed)
        + f"; in {share:.0%} of the resamples",
        HOLDS if share > 0.975 else FAILS if share < 0.025 else UNCLEAR,
    )


def _clusters_matter_little(sensitivity: pl.DataFrame) -> Iterator[Claim]:
    for method in dict.fromkeys(sensitivity["method"]):
        found = sensitivity.filter(pl.col("method") == method)
        groups = found.group_by("split", "n_clusters", maintain_order=True)
        means = groups.agg(pl.col("ece").mean() * 100)
        wide = means.pivot(on="n_clusters", index="split", values="ece").drop("split")
        values = wide.drop_nulls().to_numpy()
        drawn = values[_splits_drawn(len(values))].mean(axis=1)
        spread = percentiles(float(np.ptp(values.mean(axis=0))), np.ptp(drawn, axis=1))
        below = Interval(-spread.estimate, -spread.high, -spread.low)
        yield Claim(
            f"the number of clusters changes the mean ECE of {label(method)} by less "
            f"than {MINOR:.0f} point",
            f"by {_words(spread)} points over the numbers tried",
            _verdict(below, -MINOR),
        )


def _less_variance(
    shift: pl.DataFrame | None, means: dict[str, np.ndarray], splits: list[str]
) -> Iterator[Claim]:
    """Calibration domains lie nearer to the target than the source does."""
    if shift is None or shift.is_empty():
        return
    groups = shift.group_by("split", "diagnostic").agg(pl.col("value").mean())
    found = {row[:2]: row[2] for row in groups.iter_rows()}
    names = [f"weight_variance_{role}" for role in ("calibration", "source")]
    if not all((split, name) in found for split in splits for name in names):
        return
    calibration, source = (
        np.array([found[split, name] for split in splits]) for name in names
    )
    fall = mean_interval(source - calibration)
    yield Claim(
        "Var(w) of calibration to target is below that of source to target",
        f"{source.mean():.2f} to {calibration.mean():.2f}, by {_words(fall)}, in "
        f"{int((calibration < source).sum())} of {len(source)} splits",
        _verdict(fall),
    )
    ece = means.get("set-level")
    if ece is not None and len(splits) > 2 and np.isfinite(ece).all():
        yield _rank_correlation(calibration, ece)


def _rank_correlation(variance: np.ndarray, ece: np.ndarray) -> Claim:
    claim = f"the larger Var(w), the larger the ECE of {label('set-level')}"
    if np.ptp(variance) == 0 or np.ptp(ece) == 0:
        return Claim(claim, "one of them does not vary", UNCLEAR)
    found: Any = spearmanr(variance, ece)
    rows = _splits_drawn(len(ece))
    varied = [row for row in rows if np.ptp(variance[row]) and np.ptp(ece[row])]
    drawn: list[Any] = [spearmanr(variance[row], ece[row])[0] for row in varied[:1000]]
    interval = percentiles(float(found.statistic), np.array(drawn))
    verdict = UNCLEAR
    if found.pvalue < 0.05:
        verdict = HOLDS if found.statistic > 0 else FAILS
    numbers = f"Spearman's ρ {_words(interval)}, p = {found.pvalue:.2g}"
    return Claim(claim, numbers, verdict)


def _several_sources(
    one: RunScores, several: RunScores, published: Published | None
) -> Iterator[Claim]:
    """Three sources against one: the paper finds half of the targets better."""
    method = "ensemble"
    expected = {} if published is None else published.several_sources_help()
    for target in [name for name in one.targets if name in expected]:
        single = one.of(method, target=target)["ece_mean"].to_numpy()
        joint = several.of(method, target=target)["ece_mean"].to_numpy()
        if not (single.size and joint.size):
            continue
        drawn = [
            values[_splits_drawn(len(values))].mean(axis=1)
            for values in (single, joint)
        ]
        rise = percentiles(float(joint.mean() - single.mean()), drawn[1] - drawn[0])
        helps, before, after = expected[target]
        wanted = Interval(-rise.estimate, -rise.high, -rise.low) if helps else rise
        yield Claim(
            f"with three sources the ECE on {target} is "
            f"{'lower' if helps else 'higher'} than with one",
            f"{single.mean():.2f} to {joint.mean():.2f} %, by {_words(rise)} points",
            _verdict(wanted),
            f"{before:.2f} to {after:.2f} %",
        )


def untested_claims() -> list[Claim]:
    """Claims of the paper about data that cannot be had."""
    domainnet: Callable[[str], Claim] = lambda text: Claim(  # noqa: E731
        f"DomainNet: {text}", "the images cannot be had here", UNTESTED
    )
    return [
        domainnet("the ECE falls by 10.27 points against source-only"),
        domainnet("within a split σ < 0.4 %"),
        domainnet("nearest cluster is the best single method"),
        domainnet("the ECE is lowest for Sketch, in the middle of the targets"),
        Claim(
            "StarCraft2: domain-invariant features (MLDG) lower the ECE further",
            "never published; simulated formations stand in, see below",
            UNTESTED,
        ),
    ]
