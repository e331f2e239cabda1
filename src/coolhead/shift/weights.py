"""What a set of importance weights says about two distributions."""

import numpy as np


def weight_variance(weights: np.ndarray) -> float:
    """Return the variance of the weights after scaling them to mean one.

    Examples
    --------
    >>> import numpy as np
    >>> from coolhead.shift import weight_variance
    >>> weight_variance(np.array([1.0, 3.0]))
    0.25
    """
    weights = _positive_mean(weights)
    return float(np.var(weights / weights.mean()))


def renyi_divergence(weights: np.ndarray) -> float:
    """Return the exponentiated Rényi divergence of order two, d₂ = E_C[w²].

    It is 1 when both distributions agree and has no upper limit.

    Examples
    --------
    >>> import numpy as np
    >>> from coolhead.shift import renyi_divergence
    >>> renyi_divergence(np.array([0.5, 1.5]))
    1.25
    """
    return 1.0 + weight_variance(weights)


def effective_sample_size(weights: np.ndarray) -> float:
    """Return (Σw)²/Σw²: the number of equally weighted rows with the same variance.

    Examples
    --------
    >>> import numpy as np
    >>> from coolhead.shift import effective_sample_size
    >>> effective_sample_size(np.array([1.0, 1.0, 0.0, 0.0]))
    2.0
    """
    weights = _positive_mean(weights)
    return float(weights.sum() ** 2 / np.square(weights).sum())


def domain_sample_sizes(weights: np.ndarray, sample_domain: np.ndarray) -> dict:
    """Return the effective sample size of every domain as a share of its rows.

    A small share says that a few rows of the domain speak for all of it.

    Parameters
    ----------
    weights : (n,) importance weights of the calibration rows.
    sample_domain : (n,) domain of every row.

    Returns
    -------
    dict of domain to (share in (0, 1], mean weight of the domain).

    Examples
    --------
    >>> import numpy as np
    >>> from coolhead.shift import domain_sample_sizes
    >>> weights, site = np.array([1.0, 1.0, 4.0, 0.0]), np.array(["a", "a", "b", "b"])
    >>> domain_sample_sizes(weights, site)["b"]    # one of two rows speaks
    (0.5, 2.0)
    """
    weights, sample_domain = np.asarray(weights), np.asarray(sample_domain)
    sizes = {}
    for domain in np.unique(sample_domain):
        own = weights[sample_domain == domain]
        # A domain without any weight has no effective sample at all.
        size = effective_sample_size(own) if own.sum() > 0 else 0.0
        sizes[domain] = (size / len(own), float(own.mean()))
    return sizes


def _positive_mean(weights: np.ndarray) -> np.ndarray:
    weights = np.asarray(weights, dtype=float)
    if weights.size == 0 or np.any(~(weights >= 0)) or weights.sum() == 0:
        raise ValueError("weights must be non-negative numbers, not all of them zero")
    return weights
