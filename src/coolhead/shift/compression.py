"""Bring feature sets to a common scale and few components."""

import numpy as np
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

FITTED_ROWS = 5_000


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
        # A few thousand rows settle the components; all rows are then projected.
        some = rows[:: max(1, len(rows) // FITTED_ROWS)]
        # Four power iterations: a third cheaper than the usual seven, and what they
        # move is less than what another seed of the folds does.
        components = PCA(n_components, random_state=random_state)
        components.set_params(iterated_power=4)  # its type is declared as text
        rows = components.fit(some).transform(rows)
    # Unit scale lets one penalty serve every component and every width.
    rows = StandardScaler().fit_transform(rows.astype(float))
    cuts = np.cumsum([len(part) for part in parts])[:-1]
    return np.split(rows, cuts)


def _precision(parts: list[np.ndarray]) -> type:
    wide = any(part.dtype == np.float64 for part in parts)
    return np.float64 if wide else np.float32
