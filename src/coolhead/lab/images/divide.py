"""Every domain falls once into a Large and a Small part."""

from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedGroupKFold, train_test_split

from coolhead.io.archive import check_tags


def split_large_small(
    archive: Any,
    small: float = 0.2,
    random_state: int = 0,
    *,
    groups: Any = "auto",
    stratify: bool = False,
) -> np.ndarray:
    """Draw the Small (calibration) rows of each domain on its own.

    Parameters
    ----------
    archive : DomainArchive or ImageTable
        Rows of one or several domains.
    small : float, default=0.2
        Share of Small rows in every domain; without groups exactly ceil(small * n).
    random_state : int, default=0
        The same seed gives the same division of a domain, whatever the other domains.
    groups : array-like of shape (n_samples,), "auto" or None, default="auto"
        Rows of one group stay together; "auto" takes the archive's own groups, None
        ignores them. Small then has as many rows as whole groups allow.
    stratify : bool, default=False
        Keep the class shares equal in both parts.

    Returns
    -------
    ndarray of bool of shape (n_samples,)

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([1.0, 2.0])
    >>> small = ch.lab.images.split_large_small(data, 0.2)
    >>> data.rows(small).domain_sizes()
    {'site-0': 60, 'site-1': 60}
    """
    if not 0 < small < 1:
        raise ValueError(f"small is {small}; wanted a share between 0 and 1")
    if stratify and archive.labels is None:
        raise ValueError("stratify=True needs labels, but the archive has none")
    groups = archive.groups if isinstance(groups, str) and groups == "auto" else groups
    if groups is not None:
        groups = check_tags(groups, len(archive), "groups")
    mask = np.zeros(len(archive), dtype=bool)
    for code in np.unique(archive.domain_codes):
        rows = np.flatnonzero(archive.domain_codes == code)
        labels = archive.labels[rows] if stratify else None
        part = None if groups is None else groups[rows]
        try:
            chosen = _draw(len(rows), labels, part, small, random_state)
        except ValueError as error:
            name = archive.domain_names[code]
            raise ValueError(f"domain {name!r} cannot be divided: {error}") from error
        mask[rows[chosen]] = True
    return mask


def division_record(
    small: float, random_state: int, *, stratify: bool = False
) -> dict[str, Any]:
    """What the metadata of an archive say of the rows not trained on."""
    division = {"small": small, "stratify": stratify, "random_state": random_state}
    return {"division": division}


def _draw(
    n_rows: int,
    labels: np.ndarray | None,
    groups: np.ndarray | None,
    small: float,
    random_state: int,
) -> np.ndarray:
    """Row numbers of the Small part of one domain."""
    if groups is None:
        _, chosen = train_test_split(
            np.arange(n_rows),
            test_size=small,
            random_state=random_state,
            stratify=labels,
        )
        return np.asarray(chosen)
    if len(np.unique(groups)) < 2:
        raise ValueError("all its rows are one group; wanted at least two")
    if labels is None:
        return _draw_groups(groups, small, random_state)
    return _draw_stratified_groups(labels, groups, small, random_state)


def _draw_groups(groups: np.ndarray, small: float, random_state: int) -> np.ndarray:
    """Whole groups in random order, until the share is as near as they allow."""
    _, index, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    order = np.random.default_rng(random_state).permutation(len(sizes))
    reached = np.cumsum(sizes[order])[:-1]
    n_taken = 1 + int(np.argmin(np.abs(reached - np.ceil(small * len(groups)))))
    return np.flatnonzero(np.isin(index, order[:n_taken]))


def _draw_stratified_groups(
    labels: np.ndarray, groups: np.ndarray, small: float, random_state: int
) -> np.ndarray:
    n_folds = round(1 / small)
    if abs(n_folds * small - 1) > 1e-9 or n_folds < 2:
        raise ValueError(
            f"small is {small}; with groups and stratify wanted 1/2, 1/3, 1/4, ..."
        )
    folds = StratifiedGroupKFold(n_folds, shuffle=True, random_state=random_state)
    return next(folds.split(np.zeros(len(labels)), labels, groups))[1]
