"""How sure a difference between two methods is over splits: resample the splits.

The splits of an experiment share domains and classifiers; resampling whole splits, with
all their seeds, keeps what belongs together together.
"""

import numpy as np
import polars as pl

from coolhead.experiment.tables.run_scores import RunScores
from coolhead.metrics import Interval

DRAWS = 4000


def split_means(scores: RunScores, method: str) -> np.ndarray:
    """ECE of each split, averaged over the seeds, (n_splits,); NaN where missing."""
    means = scores.of(method).group_by("split").agg(pl.col("ece_mean").mean())
    by_split = dict(means.iter_rows())
    # A null becomes NaN like a split that is not there.
    return np.array([by_split.get(split) for split in scores.splits], float)


def ratio_difference(scores: RunScores, method: str, rival: str) -> Interval | None:
    """Improvement ratio of `method` minus that of `rival`, percentile interval.

    None where the ratio is undefined: source-only not worse than the oracle.
    """
    names = (method, rival, "source-only", "target-only")
    values = np.stack([split_means(scores, name) for name in names])
    if np.isnan(values).any():
        return None
    own, other, source, oracle = values
    if source.mean() <= oracle.mean():
        return None
    n_splits = values.shape[1]
    rows = np.random.default_rng(0).integers(n_splits, size=(DRAWS, n_splits))
    room = (source - oracle)[rows].mean(axis=1)
    change = (other - own)[rows].mean(axis=1)
    # A resample without room for improvement has no ratio.
    drawn = change[room > 0] / room[room > 0]
    low, high = np.quantile(drawn, [0.025, 0.975])
    estimate = (other - own).mean() / (source - oracle).mean()
    return Interval(float(estimate), float(low), float(high))
