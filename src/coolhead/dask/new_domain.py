"""What to expect of a domain whose rows are spread over a cluster."""

from typing import Any

import numpy as np

from coolhead.dask.blocks import block_lengths
from coolhead.dask.fitting import SAMPLE_ROWS, sample_table
from coolhead.dask.prediction import arguments, query
from coolhead.new_domain import NewDomain


def new_domain(
    calibrator: Any,
    logits: Any,
    features: Any = None,
    *,
    sample_rows: int = SAMPLE_ROWS,
    **settings: Any,
) -> NewDomain:
    """`NewDomain` of Dask arrays or dataframes; its calibrator predicts on all rows.

    Parameters
    ----------
    calibrator : fitted, one that divides the logits by a temperature.
    logits, features : as in `NewDomain`, with the rows in the same order.
    sample_rows : so many rows, evenly spaced, are brought together; all, if there are
        no more. Rows keep the numbers they have among all.
    **settings : of `NewDomain`.

    Examples
    --------
    >>> import coolhead as ch
    >>> import dask.array as da
    >>> data = ch.datasets.simulate_domains([1.0, 1.5, 2.0, 1.5])
    >>> seen, unseen = data.select("site-0", "site-1", "site-2"), data.select("site-3")
    >>> cal = ch.TemperatureScaling().fit(seen.logits, seen.labels)
    >>> known = ch.new_domain.learn_evidence(
    ...     cal, seen.logits, seen.labels, sample_domain=seen.domains
    ... )
    >>> logits = da.from_array(unseen.logits, chunks=(100, -1))
    >>> there = ch.dask.new_domain(cal, logits, evidence=known)
    >>> 0 < there.accuracy.low < there.accuracy.high < 1
    True
    """
    table = query(calibrator, logits, features, extra=features)
    if "extra" in table:
        # Even where it is not needed to predict, it tells what lies outside.
        table["features"] = table.pop("extra")
    logits, features = arguments(sample_table(table, sample_rows))
    n_rows = int(block_lengths(table).sum())
    step = max(1, -(-n_rows // sample_rows))
    return NewDomain(
        calibrator,
        logits,
        features,
        row_numbers=np.arange(0, n_rows, step),
        drawn_from=n_rows if step > 1 else None,
        **settings,
    )
