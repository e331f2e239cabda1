"""Which calibrator to use, how much it helps, and a verdict for every domain.

Terminal and report both ask here, so that they never recommend different methods.
"""

from typing import Any

import numpy as np
import polars as pl

from coolhead.methods import known_method
from coolhead.report.tables import (
    RunScores,
    column_mean,
    label,
    plain_name,
    split_means,
)

BEFORE = "uncalibrated"
SOURCE_ONLY = "source-only"
CHANGE = "ece_vs_uncalibrated"
LIMITS = f"{CHANGE}_low", f"{CHANGE}_high"
DRAWS = 4000
# Below this number of splits an interval by resampling them is meaningless.
FEW = 4
# An ECE this many points above noise: stated confidence is still off by more than that.
UNTRUSTED = 10.0
# The verdicts on a domain, the worst first.
VERDICTS = ("worse", "still not trustworthy", "unclear", "better")


def choose_method(scores: RunScores) -> str | None:
    """Return the method with the lowest mean ECE of those without target data.

    Only methods that ran on every split of the uncalibrated classifier compete.
    """
    means = candidate_means(scores)
    return min(means, key=lambda name: means[name].mean()) if means else None


def candidate_means(scores: RunScores) -> dict[str, np.ndarray]:
    """ECE in per cent of every split by method, methods with gaps left out."""
    found = {name: split_means(scores, name) for name in scores.methods}
    before = found.pop(BEFORE, None)
    if before is None:
        return {}
    return {
        name: values
        for name, values in found.items()
        if not known_method(name).sees_target
        and not np.isnan(values[~np.isnan(before)]).any()
    }


def describe_answer(scores: RunScores, noun: str) -> dict[str, Any]:
    """Return the sentence of the page and its numbers; only `sentence` if none."""
    method = choose_method(scores)
    if method is None:
        return {"sentence": _no_answer(scores, noun), "method": None}
    pairs = scores.paired(method, BEFORE)
    by_split = pairs.group_by("split", "target", maintain_order=True).agg(
        pl.col("ece_mean", "ece_mean_base").mean()
    )
    change = (by_split["ece_mean"] - by_split["ece_mean_base"]).to_numpy()
    low, high = _interval(pairs, change)
    found = {
        "method": method,
        "label": label(method),
        "recommended": bool(change.mean() < 0),
        "before": float(by_split["ece_mean_base"].to_numpy().mean()),
        "after": float(by_split["ece_mean"].to_numpy().mean()),
        "change": float(change.mean()),
        "low": low,
        "high": high,
        "n_worse": int((change > 0).sum()),
        "n_clearly_worse": _count_clear(pairs),
        "n": len(change),
        "null": column_mean(scores.of(method), "ece_null"),
        "noun": noun,
        "how": _how(method),
        "resampled": len(change) >= FEW,
        "n_candidates": len(candidate_means(scores)),
        "elsewhere": _chosen_elsewhere(scores),
        "oracle": column_mean(scores.of("target-only"), "ece_mean"),
    }
    plain = plain_name(method)
    also = f" {found['label']}: {plain}." if plain else ""
    return found | {"sentence": _sentence(found) + also}


def _sentence(found: dict[str, Any]) -> str:
    over = plural(found["n"], found["noun"])
    numbers = (
        f"from {found['before']:.1f} % to {found['after']:.1f} % (change "
        f"{found['change']:+.1f} points, 95 % interval {found['low']:+.1f} to "
        f"{found['high']:+.1f})".replace("-", "−")
    )
    if not found["recommended"]:
        several = found["n_candidates"] > 1
        best = f"The best, {found['label']}," if several else found["label"]
        return (
            "Leave the classifier uncalibrated: no method without target data lowers "
            f"its calibration error. {best} takes it {numbers} over {over}."
        )
    harm = f"makes it worse in {found['n_worse'] or 'none'} of them"
    if found["n"] == 1:
        harm = "does not make it worse"
    why = ""
    if found["method"] == SOURCE_ONLY and found["n_candidates"] > 1:
        why = ", rows of other domains do not help here"
    doubt = "; the interval includes no gain" if not found["high"] < 0 else ""
    return (
        f"Use {found['label']}{why}: over {over} it takes the mean calibration error "
        f"{numbers} and {harm}{doubt}."
    )


def _how(method: str) -> str | None:
    """Class and rows of a method, so that a reader can repeat the fit."""
    known = known_method(method)
    if known.maker is None:
        return None
    return (
        f"{known.maker.__name__}, fitted on labelled rows of: {', '.join(known.rows)}"
    )


def _no_answer(scores: RunScores, noun: str) -> str:
    if BEFORE not in scores.methods:
        return "The uncalibrated classifier is not among the results: no comparison."
    return f"No method without target data ran on every {noun}: no recommendation."


def _interval(pairs: pl.DataFrame, change: np.ndarray) -> tuple[float, float]:
    """Resample splits; with few splits average their own paired limits."""
    if len(change) < FEW:
        low, high = (column_mean(pairs, name) for name in LIMITS)
        return (np.nan if low is None else low), (np.nan if high is None else high)
    rows = np.random.default_rng(0).integers(len(change), size=(DRAWS, len(change)))
    low, high = np.quantile(change[rows].mean(axis=1), [0.025, 0.975])
    return float(low), float(high)


def _count_clear(pairs: pl.DataFrame) -> int:
    """Count splits whose paired interval lies above zero for every seed."""
    if LIMITS[0] not in pairs.columns:
        return 0
    lows = pairs.group_by("split").agg(pl.col(LIMITS[0]).min())
    return int((lows[LIMITS[0]].to_numpy() > 0).sum())


def _chosen_elsewhere(scores: RunScores) -> float | None:
    """Mean ECE if each target's method is chosen on the other targets alone."""
    means = candidate_means(scores)
    targets = dict(scores.frame.select("split", "target").iter_rows())
    own = np.array([targets[split] for split in scores.splits])
    if len(means) < 2 or len(set(own)) < 2:
        return None
    table = np.stack(list(means.values()))
    reached = []
    for target in dict.fromkeys(own):
        best = np.nanmean(table[:, own != target], axis=1).argmin()
        reached.append(table[best, own == target])
    return float(np.nanmean(np.concatenate(reached)))


def domain_verdicts(scores: RunScores, method: str | None) -> list[dict[str, Any]]:
    """Return ECE before and after, and a verdict, of every split; the worst first."""
    if method is None:
        return []
    pairs = scores.paired(method, BEFORE)
    change, low, high = (
        pl.col(name) if name in pairs.columns else pl.lit(None, pl.Float64)
        for name in (CHANGE, *LIMITS)
    )
    # The least favourable seed decides what is clear.
    rows = pairs.group_by("split", "target", maintain_order=True).agg(
        before=pl.col("ece_mean_base").mean(),
        after=pl.col("ece_mean").mean(),
        noise=pl.col("ece_null").mean(),
        n_rows=pl.col("n_evaluated").mean(),
        change=change.mean(),
        low=low.min(),
        high=high.max(),
    )
    found = rows.drop_nulls(["before", "after"]).to_dicts()
    for row in found:
        row["verdict"] = _verdict(row)
        if row["change"] is None:
            row["change"] = row["after"] - row["before"]
        limits = row["low"], row["high"]
        row["outside"] = (
            None not in limits and not limits[0] <= row["change"] <= limits[1]
        )
    return sorted(found, key=lambda r: (VERDICTS.index(r["verdict"]), -r["change"]))


def _verdict(row: dict[str, Any]) -> str:
    if row["low"] is not None and row["low"] > 0:
        return "worse"
    if row["after"] - (row["noise"] or 0) > UNTRUSTED:
        return "still not trustworthy"
    return "better" if row["high"] is not None and row["high"] < 0 else "unclear"


def plural(count: int, noun: str) -> str:
    """A number of things, as in "1 split" and "2 splits"."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
