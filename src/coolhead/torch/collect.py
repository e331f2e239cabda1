"""From a network and its data loaders to a calibrated network, in one call."""

from collections.abc import Iterable, Iterator, Mapping, Sized
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from coolhead.calibrators.auto import AutoCalibrator
from coolhead.calibrators.data import CalibrationData, fit_with, fresh, refuse_source
from coolhead.calibrators.evidence import keep_evidence
from coolhead.calibrators.temperature import TemperatureScaling
from coolhead.classifier.classifier import check_reach
from coolhead.io.archive import DomainArchive
from coolhead.models.dense import IGNORED, dense_rows
from coolhead.models.libraries import call, frozen
from coolhead.models.outputs import check_calibrator
from coolhead.numerics.checks import readable
from coolhead.progress import progress_bars
from coolhead.torch.features import captured, pool
from coolhead.torch.module import CalibratedModule, split_output

Loaders = Iterable[Any] | Mapping[str, Iterable[Any]]


def calibrate(
    model: torch.nn.Module,
    loaders: Loaders,
    calibrator: Any = None,
    *,
    source: Any = None,
    feature_layer: str | None = None,
    ignore_index: int = IGNORED,
    rows_per_batch: int | None = None,
    progress: bool = True,
) -> CalibratedModule:
    """Fit a calibrator on the labelled batches of a network, and put it behind it.

    Parameters
    ----------
    model : torch.nn.Module
        As for `collect_predictions`.
    loaders : DataLoader or dict of str to DataLoader
        As for `collect_predictions`, with rows that the network was not trained on.
    calibrator : Calibrator, default=None
        Not fitted; `AutoCalibrator()` by default, or without features (for pixels and
        tokens) `TemperatureScaling()`.
    source : str or list of str, default=None
        Names of the loaders whose domains the network was trained on.
    feature_layer : str, default=None
        As for `collect_predictions`.
    ignore_index : int, default=-100
        As for `collect_predictions`.
    rows_per_batch : int, default=None
        As for `collect_predictions`.
    progress : bool, default=True
        As for `collect_predictions`.

    Returns
    -------
    CalibratedModule
        The network with the fitted calibrator.

    Examples
    --------
    >>> import coolhead as ch
    >>> import torch
    >>> network = torch.nn.Linear(4, 3)
    >>> sites = ch.datasets.simulate_domains([1.0, 2.0, 3.0])
    >>> def batches(site):
    ...     part = sites.select(site)
    ...     return [(torch.tensor(part.features).float(), torch.tensor(part.labels))]
    ...
    >>> loaders = {name: batches(name) for name in sites.domain_names}
    >>> cal = ch.TemperatureScaling()
    >>> net = ch.torch.calibrate(network, loaders, cal, progress=False)
    >>> net(torch.zeros(2, 4)).shape
    torch.Size([2, 3])
    """
    if calibrator is not None:
        # A fit that must fail is refused before the network runs.
        refuse_source(check_calibrator(calibrator), source)
        check_reach(calibrator, loaders if isinstance(loaders, Mapping) else None)
    rows = collect_predictions(
        model,
        loaders,
        feature_layer=feature_layer,
        ignore_index=ignore_index,
        rows_per_batch=rows_per_batch,
        progress=progress,
    )
    usual = TemperatureScaling() if rows.features is None else AutoCalibrator()
    fitted = fresh(usual if calibrator is None else calibrator)
    data = CalibrationData.of(
        np.asarray(rows.logits),
        np.asarray(rows.labels),
        features=rows.features,
        sample_domain=rows.domains if len(rows.domain_names) > 1 else None,
        source_domain=source,
    )
    data = replace(data, classes=rows.class_names)
    fit_with(fitted, data)
    keep_evidence(fitted, data)
    return CalibratedModule(model, fitted, feature_layer)


def collect_predictions(
    model: torch.nn.Module,
    loaders: Loaders,
    *,
    feature_layer: str | None = None,
    ignore_index: int = IGNORED,
    rows_per_batch: int | None = None,
    progress: bool = True,
) -> DomainArchive:
    """Return logits, features and labels of every row of the loaders.

    Parameters
    ----------
    model : torch.nn.Module
        As for `CalibratedModule`; run in evaluation mode on its device.
    loaders : DataLoader or dict of str to DataLoader
        One for each domain, by its name. Batches are pairs (inputs, labels), or
        dictionaries with `labels` that the network takes.
    feature_layer : str, default=None
        As for `CalibratedModule`. Pixels and tokens have features only if it is named;
        they are then those of the map at the same place.
    ignore_index : int, default=-100
        Label of pixels or tokens to leave out.
    rows_per_batch : int, default=None
        Number of pixels or tokens to draw from each batch; all by default.
    progress : bool, default=True
        Show a bar, where standard error is a terminal.

    Returns
    -------
    DomainArchive
        One domain for each loader.

    Examples
    --------
    >>> import coolhead as ch
    >>> import torch
    >>> network = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 3))
    >>> batch = torch.zeros(10, 4), torch.arange(10) % 3
    >>> data = ch.torch.collect_predictions(network, {"photo": [batch]}, progress=False)
    >>> data.logits.shape, data.features.shape, data.domain_names
    ((10, 3), (10, 8), ('photo',))
    """
    named = loaders if isinstance(loaders, Mapping) else {"all": loaders}
    rng = np.random.default_rng(0)
    parts: list[tuple] = []
    domains: list[np.ndarray] = []
    with (
        frozen(model),
        captured(model, feature_layer) as capture,
        progress_bars(shown=progress) as report,
    ):
        for domain, loader in named.items():
            for number, (batch, labels) in enumerate(_pairs(loader, domain), 1):
                logits, features = split_output(call(model, batch))
                seen = capture.take()
                if logits.ndim > 2:
                    # Of every token: asked for by name, or not at all.
                    features = seen if feature_layer else None
                    part = dense_rows(
                        logits,
                        labels,
                        features=features,
                        ignore_index=ignore_index,
                        most=rows_per_batch,
                        random_state=rng,
                    )
                    parts.append((part.logits, part.labels, part.features))
                else:
                    features = seen if features is None else features
                    parts.append(_rows(logits, labels, features))
                domains.append(np.repeat(str(domain), len(parts[-1][1])))
                n_batches = len(loader) if isinstance(loader, Sized) else None
                report(str(domain), number, n_batches)
    if not parts:
        raise ValueError("loaders gave no batch; wanted labelled rows")
    logits, labels, features = zip(*parts, strict=True)
    return DomainArchive(
        np.concatenate(logits),
        None if features[0] is None else np.concatenate(features),
        np.concatenate(labels),
        np.concatenate(domains),
    )


def _pairs(loader: Iterable[Any], domain: str) -> Iterator[tuple[Any, Any]]:
    """Yield batches as the network takes them, and their labels."""
    for batch in loader:
        if isinstance(batch, Mapping) and "labels" in batch:
            yield batch, batch["labels"]
        elif isinstance(batch, list | tuple) and len(batch) > 1:
            yield batch[0], batch[1]
        else:
            raise ValueError(
                f"a batch of {domain!r} is a {type(batch).__name__} without labels; "
                "wanted (inputs, labels), or a dictionary with labels"
            )


def _rows(
    logits: Any, labels: Any, features: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return logits (n, k), labels (n,) and features (n, d) of a batch as arrays."""
    codes = np.asarray(readable(labels, "labels"))
    if codes.ndim == 2 and codes.shape[1] == 1:
        codes = codes[:, 0]  # as binary losses of torch want them
    if codes.dtype.kind == "f" and (codes % 1 == 0).all():
        codes = codes.astype(np.intp)
    if features is not None:
        features = np.asarray(readable(pool(features, "the network"), "features"))
    return np.asarray(readable(logits, "logits")), codes, features
