"""Bring features to a common centre and one common scale."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from coolhead.io.archive import DomainArchive
from coolhead.lab.heads.head import Head
from coolhead.lab.heads.settings import TORCH_KINDS, head_settings
from coolhead.numerics.blocks import row_blocks
from coolhead.numerics.checks import check_features


def center_and_scale(
    features: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, np.float32]:
    """Return the mean of each column and one standard deviation for all of them.

    One scalar keeps the geometry of the features: columns that carry little stay
    small, where a scale per column would blow their noise up.

    Parameters
    ----------
    features : (n, d), any float dtype, may be memory-mapped
    rows : (m,) int
        Rows to use.

    Returns
    -------
    center : (d,) float32
    scale : float32 in (0, inf)
    """
    total = np.zeros(features.shape[1])
    for block in row_blocks(rows.size, features.shape[1]):
        total += features[rows[block]].sum(axis=0, dtype=np.float64)
    center = total / rows.size
    squares = 0.0
    with np.errstate(over="ignore"):  # refused below
        for block in row_blocks(rows.size, features.shape[1]):
            squares += np.square(features[rows[block]] - center).sum()
        scale = np.float32(np.sqrt(squares / (rows.size * features.shape[1])))
        center = center.astype(np.float32)
    if not (np.isfinite(scale) and np.isfinite(center).all()):
        raise ValueError(
            "features reaches beyond 3e38; wanted numbers that single precision holds"
        )
    return center, scale if scale > 0 else np.float32(1.0)


@dataclass(frozen=True)
class TrainingRows:
    """Rows to train on, rows to watch (may be none), and the domain of every row."""

    train: np.ndarray
    small: np.ndarray
    domains: np.ndarray


def endless_rows(rows: np.ndarray, size: int, rng: np.random.Generator) -> Iterator:
    """Yield arrays of `size` rows, going through fresh shuffles of `rows` for ever."""
    waiting = rng.permutation(rows)
    while True:
        while waiting.size < size:
            waiting = np.concatenate([waiting, rng.permutation(rows)])
        yield waiting[:size]
        waiting = waiting[size:]


def balanced_batches(
    pools: list[np.ndarray], batch_size: int, rng: np.random.Generator
) -> Iterator[list[np.ndarray]]:
    """Yield lists of row arrays, one per pool, with equal shares of `batch_size`.

    Parameters
    ----------
    pools : list of (n_i,) int arrays
        The rows of each source domain; one pool of all rows gives plain batches.
    """
    share = max(1, batch_size // len(pools))
    streams = [endless_rows(pool, share, rng) for pool in pools]
    while True:
        yield [next(stream) for stream in streams]


def domain_pools(rows: np.ndarray, domains: np.ndarray) -> list[np.ndarray]:
    """Divide `rows` by their domain, in order of the domains' first appearance.

    Parameters
    ----------
    rows : (m,) int
    domains : (n,) array of any hashable kind
        Domain of every row of the archive, indexed by `rows`.
    """
    names = domains[rows]
    _, first, codes = np.unique(names, return_index=True, return_inverse=True)
    return [rows[codes == code] for code in np.argsort(first)]


def train_head(
    archive: DomainArchive,
    source: str | Sequence[str],
    *,
    kind: str = "mlp",
    small: np.ndarray | None = None,
    random_state: int = 0,
    **settings: Any,
) -> Head:
    """Train a classifier on the features of one or several source domains.

    Parameters
    ----------
    archive : DomainArchive
        Features and labels; rows of other domains are never looked at.
    source : str or sequence of str
        Domain(s) to train on.
    kind : {"mlp", "logistic", "erm", "mldg"}
        The first two train with scikit-learn, the last two with torch. "erm" has
        dropout and weight decay; "mldg" also learns to survive a change of domain
        and needs at least two sources.
    small : (n,) bool, optional
        The archive's Small rows: left out of training; those of the sources serve
        early stopping, the choice of MLDG's inner step and the learning curve.
    random_state : int
        Seed of initial values, shuffles and dropout; on one machine and number of
        threads the same seed gives the same weights to the bit.
    **settings
        Fields of the kind's settings, for example ``hidden=(512,)``, ``epochs=20``.

    Returns
    -------
    Head
        ``head.apply(archive)`` gives logits and penultimate features.

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.load_dataset("digits").rows(slice(0, None, 20))
    >>> head = ch.train_head(data, "uci", kind="logistic")
    >>> head.apply(data).logits.shape
    (840, 10)
    """
    chosen = head_settings(kind, **settings)
    sources = [source] if isinstance(source, str) else list(source)
    features, labels = _columns(archive)
    rows = training_rows(archive, sources, small)
    _check_enough(kind, chosen, sources, rows)
    center, scale = center_and_scale(features, rows.train)
    n_classes = archive.n_classes or int(labels.max()) + 1
    arguments = (features, labels, rows, n_classes, chosen)
    trainer = _train_with_torch if kind in TORCH_KINDS else _train_without_torch
    layers, curve, chosen = trainer(*arguments, center, scale, random_state)
    record = {"kind": kind, "source": sources, "random_state": random_state}
    if archive.class_names is not None:
        record["class_names"] = list(archive.class_names)
    return Head(
        weights=tuple(np.asarray(weight, np.float32) for weight, _ in layers),
        biases=tuple(np.asarray(bias, np.float32) for _, bias in layers),
        center=center,
        scale=scale,
        settings={**record, "n_train": int(rows.train.size), **asdict(chosen)},
        curve=curve,
    )


def training_rows(
    archive: DomainArchive, sources: Sequence[str], small: np.ndarray | None
) -> TrainingRows:
    """Return the sources' Large rows to train on and their Small rows to watch."""
    domains = np.asarray(archive.domains)
    known = list(archive.domain_names)
    if not sources or not set(sources) <= set(known):
        raise ValueError(
            f"source must name domains of the archive, {known}; found {sources}"
        )
    held_out = np.zeros(domains.size, bool) if small is None else np.asarray(small)
    if held_out.shape != domains.shape or held_out.dtype != bool:
        raise ValueError(
            f"small must be a boolean mask of shape {domains.shape}; "
            f"found {held_out.dtype} of shape {held_out.shape}"
        )
    inside = np.isin(domains, sources)
    large, small = inside & ~held_out, inside & held_out
    return TrainingRows(np.flatnonzero(large), np.flatnonzero(small), domains)


def _check_enough(kind: str, settings: Any, sources: list, rows: TrainingRows) -> None:
    if rows.train.size < 2:
        raise ValueError(
            f"source {sources} has {rows.train.size} rows to train on; at least 2"
        )
    if kind == "mldg" and len(np.unique(rows.domains[rows.train])) < 2:
        raise ValueError(
            f"kind='mldg' needs at least two source domains; found {sources}"
        )
    if getattr(settings, "patience", 0) and rows.small.size == 0:
        raise ValueError("patience stops early on the sources' Small rows: give small=")


def _columns(archive: DomainArchive) -> tuple[np.ndarray, np.ndarray]:
    if archive.features is None or archive.labels is None:
        missing = "features" if archive.features is None else "labels"
        raise ValueError(
            f"archive.{missing} is None: a head is trained on features and labels"
        )
    return check_features(archive.features, len(archive)), archive.labels


def _train_with_torch(
    features, labels, rows, n_classes, settings, center, scale, random_state
):
    try:
        from coolhead.lab.heads.torch_training import StandardisedRows, train_network
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        msg = "kind='erm' and 'mldg' need torch: pip install 'coolhead[torch]'; "
        msg += "kind='mlp' trains without it"
        raise ModuleNotFoundError(msg, name="torch") from error
    inputs = StandardisedRows(features, labels, center, scale)
    parameters, curve, settings = train_network(
        inputs, rows, n_classes, settings, random_state
    )
    arrays = [p.detach().numpy() for p in parameters]
    layers = [(w.T, b) for w, b in zip(arrays[::2], arrays[1::2], strict=True)]
    return layers, curve, settings


def _train_without_torch(
    features, labels, rows, n_classes, settings, center, scale, random_state
):
    from coolhead.lab.heads.classical import fit_logistic, fit_mlp
    from coolhead.lab.heads.settings import LogisticSettings

    def pair(index):
        x = (np.asarray(features[index], np.float32) - center) / scale
        return x, np.asarray(labels[index])

    train, small = pair(rows.train), pair(rows.small)
    if isinstance(settings, LogisticSettings):
        return fit_logistic(*train, n_classes, settings), [], settings
    layers, curve = fit_mlp(train, small, n_classes, settings, random_state)
    return layers, curve, settings
