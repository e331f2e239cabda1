"""Several crops or views of one input, averaged to one row of logits."""

from typing import Any

import numpy as np
from scipy.special import log_softmax, logsumexp

from coolhead.numerics.arrays import real_array
from coolhead.numerics.checks import check_choice, check_logit_values


def mean_of_crops(logits: Any, *, of: str = "logits") -> np.ndarray:
    """Logits (n, k) out of those of every crop, (n, crops, k).

    Parameters
    ----------
    logits : of the same number of crops for each row; a class that is masked (-inf) in
        some crop of a row is masked in the row.
    of : what is averaged. "logits", the usual way, is the geometric mean of what the
        crops say; "probabilities" the arithmetic mean, whose logarithms are returned.
        The latter is never surer than the surest crop. Calibrate what you serve: the
        two need different temperatures.

    Examples
    --------
    >>> mean_of_crops([[[0.0, 2.0], [0.0, 4.0]]])
    array([[0., 3.]])
    """
    check_choice(of, "of", "logits", "probabilities")
    array = real_array(logits, "logits")
    if array.ndim != 3 or 0 in array.shape:
        raise ValueError(
            f"logits has shape {array.shape}; wanted (n, crops, k), of several crops"
        )
    check_logit_values(array.reshape(-1, array.shape[2]), "logits of all crops")
    wide = array.astype(np.promote_types(array.dtype, np.float32))
    if of == "logits":
        return wide.mean(axis=1)
    masked = np.isneginf(wide).any(axis=1)
    mean = logsumexp(log_softmax(wide, axis=2), axis=1) - np.log(array.shape[1])
    return np.where(masked, -np.inf, mean).astype(wide.dtype)
