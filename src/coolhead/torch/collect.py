"""From a network and its data loaders to a calibrated network, in one call."""

from collections.abc import Iterable, Iterator, Mapping
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
from coolhead.models.outputs import check_calibrator, scores_in
from coolhead.numerics.checks import readable
from coolhead.progress import progress_bars
from coolhead.torch.features import captured, pool
from coolhead.torch.module import CalibratedModule

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
    """Run a network over labelled batches, fit a calibrator, put it behind the network.

    Parameters
    ----------
    model, loaders, feature_layer, ignore_index, rows_per_batch, progress : as for
        `collect_predictions`. The rows must not be those the network was trained on.
    calibrator : not fitted; `AutoCalibrator()` by default, or without features (for
        pixels and tokens) `TemperatureScaling()`.
    source : names of the loaders whose domains the network was trained on.

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
        # What could not be fitted is refused before the network runs.
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
    """Logits, features and labels of every row that the loaders give.

    Parameters
    ----------
    model : network as for `CalibratedModule`; run in evaluation mode on its device.
    loaders : a `DataLoader`, or one for each domain, by its name. Batches are pairs
        (inputs, labels), or dictionaries with `labels` that the network takes.
    feature_layer : as for `CalibratedModule`. Pixels and tokens have features only if
        it is named; they are then those of the map at the same place.
    ignore_index : label of pixels or tokens to leave out.
    rows_per_batch : of pixels or tokens, so many of a batch at random; all by default.
    progress : show a bar, where standard error is a terminal.

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
        progress_bars(shown=progress) as tell,
    ):
        for domain, loader in named.items():
            for number, (batch, labels) in enumerate(_pairs(loader, domain), 1):
                output = call(model, batch)
                seen = capture.take()
                if feature_layer is None and np.ndim(scores_in(output)) > 2:
                    seen = None  # of every token: asked for by name, or not at all
                part = _rows(output, seen, labels, ignore_index, rows_per_batch, rng)
                parts.append(part)
                domains.append(np.repeat(str(domain), len(part[1])))
                tell(str(domain), number, _length(loader))
    if not parts:
        raise ValueError("loaders gave no batch; wanted labelled rows")
    logits, labels, features = zip(*parts, strict=True)
    return DomainArchive(
        np.concatenate(logits),
        None if features[0] is None else np.concatenate(features),
        np.concatenate(labels),
        np.concatenate(domains),
    )


def _length(loader: Any) -> int | None:
    return len(loader) if hasattr(loader, "__len__") else None


def _pairs(loader: Iterable[Any], domain: str) -> Iterator[tuple[Any, Any]]:
    """Batches as the network takes them, and their labels."""
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


def _class_numbers(labels: Any) -> np.ndarray:
    """Labels (n,); binary losses of torch want 0.0 and 1.0, also of shape (n, 1)."""
    array = np.asarray(readable(labels, "labels"))
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.dtype.kind == "f" and (array % 1 == 0).all():
        array = array.astype(np.intp)
    return array


def _rows(
    output: Any,
    seen: Any,
    labels: Any,
    ignore_index: int,
    most: int | None,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Logits, labels and features of one batch."""
    logits = np.asarray(readable(scores_in(output), "logits"))
    if logits.ndim <= 2:
        if logits.ndim == 2 and logits.shape[1] == 1:
            logits = logits[:, 0]  # one unit of output is the margin of class 1
        pair = isinstance(output, tuple) and len(output) == 2
        if pair and isinstance(output[1], torch.Tensor):
            seen = output[1]
        features = None if seen is None else pool(seen, "the network")
        kept = None if features is None else np.asarray(readable(features, "features"))
        return logits, _class_numbers(labels), kept
    places = dense_rows(
        logits,
        labels,
        features=seen,
        ignore_index=ignore_index,
        most=most,
        random_state=rng,
    )
    assert places.labels is not None
    return places.logits, places.labels, places.features
