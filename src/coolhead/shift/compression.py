"""Bring feature sets to a common scale and few components."""

from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler
from sklearn.utils.extmath import randomized_svd

FITTED_ROWS = 2_500

# Columns up to which their products cost less than the iterations they save.
WIDE = 1_024


def compress(
    parts: list[np.ndarray], n_components: int, random_state: int
) -> list[np.ndarray]:
    """Standardise the parts together and keep their leading principal components.

    The components look at no label and at no domain, so a discriminator that is
    cross-fitted on them stays honest.

    Parameters
    ----------
    parts : finite arrays (n_i, d).
    n_components : at most this many columns are returned.
    random_state : seed of the randomised decomposition.

    Returns
    -------
    list of arrays (n_i, c) of float64 with columns of about unit scale.
    """
    rows = np.concatenate(parts).astype(_precision(parts), copy=False)
    rows = StandardScaler(copy=False).fit_transform(rows)
    n_components = min(n_components, *rows.shape)
    if n_components < rows.shape[1]:
        rows = rows @ _directions(rows, n_components, random_state)
    # Unit scale lets one penalty serve every component and every width.
    rows = StandardScaler().fit_transform(rows.astype(float))
    cuts = np.cumsum([len(part) for part in parts])[:-1]
    return np.split(rows, cuts)


def _directions(rows: np.ndarray, n_wanted: int, random_state: int) -> np.ndarray:
    """Leading principal directions of the rows, (d, n_wanted) or as many as there are.

    So many rows and four power iterations, instead of all rows and seven, move the
    density ratio by no more than another seed of its folds does.
    """
    some = rows[_spread(len(rows), FITTED_ROWS)]
    some = some - some.mean(axis=0)
    if some.shape[1] <= WIDE:
        # The same directions, for one product instead of two in every iteration.
        some = some.T @ some
    settings: dict[str, Any] = {"n_iter": 4}  # its type is declared as text
    found = randomized_svd(some, n_wanted, random_state=random_state, **settings)
    _, sizes, directions = found
    # What rounding leaves of fewer dimensions is no direction; brought to unit scale,
    # it would count as one.
    least = sizes[0] * max(some.shape) * np.finfo(some.dtype).eps
    return directions[: max(1, np.count_nonzero(sizes > least))].T


def _spread(n_rows: int, n_wanted: int) -> np.ndarray | slice:
    if n_rows <= n_wanted:
        return slice(None)
    return np.arange(n_wanted) * n_rows // n_wanted


def _precision(parts: list[np.ndarray]) -> type:
    wide = any(part.dtype == np.float64 for part in parts)
    return np.float64 if wide else np.float32
