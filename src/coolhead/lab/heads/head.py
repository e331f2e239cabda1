"""A trained head: arrays that turn features into logits, by whatever trainer."""

import json
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np

from coolhead.io.archive import DomainArchive
from coolhead.io.safetensors import tensors_path
from coolhead.numerics.blocks import row_blocks
from coolhead.numerics.checks import check_features

Layers = list[tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True, eq=False)
class Head:
    """A multilayer perceptron in NumPy: standardise, hidden ReLU layers, logits.

    Attributes
    ----------
    weights : tuple of (n_in, n_out) float32
    biases : tuple of (n_out,) float32
    center : (d,) float32
    scale : float32
        Inputs are ``(features - center) / scale``.
    settings : dict
        Kind, sources, seed and every setting the head was trained with.
    curve : list of dict
        One entry per epoch: ``epoch``, ``loss`` and, where Small rows were given,
        ``small_loss`` and ``small_accuracy``.

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.load_dataset("digits").rows(slice(0, None, 20))
    >>> head = ch.train_head(data, "uci", kind="logistic")
    >>> head.n_classes, head.n_features, head.settings["kind"]
    (10, 256, 'logistic')
    """

    weights: tuple[np.ndarray, ...]
    biases: tuple[np.ndarray, ...]
    center: np.ndarray
    scale: np.float32
    settings: dict[str, Any] = field(default_factory=dict)
    curve: list[dict[str, float]] = field(default_factory=list)

    @property
    def n_classes(self) -> int:
        """Number of logits."""
        return self.weights[-1].shape[1]

    @property
    def n_features(self) -> int:
        """Number of penultimate features; a linear head's are its inputs."""
        return self.weights[-1].shape[0]

    def outputs(self, features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return logits (n, k) and penultimate features (n, h), both float32."""
        features = check_features(features, len(features), self.center.size)
        logits = np.empty((len(features), self.n_classes), np.float32)
        hidden = np.empty((len(features), self.n_features), np.float32)
        layers = list(zip(self.weights, self.biases, strict=True))
        widest = max(weight.shape[0] for weight in self.weights)
        for block in row_blocks(len(features), widest):
            x = np.asarray(features[block], np.float32)
            z = (x - self.center) / self.scale
            z, logits[block] = hidden_and_logits(layers, z)
            hidden[block] = z if len(layers) > 1 else x
        return logits, hidden

    def apply(self, archive: DomainArchive) -> DomainArchive:
        """Return the archive with this head's logits and penultimate features.

        Where both have names of classes, labels are brought into the order of the
        head's, and other names are refused.
        """
        archive = archive.in_class_order(self.settings.get("class_names"))
        if archive.features is None:
            raise ValueError(
                "archive.features is None: a head needs features to work on"
            )
        logits, features = self.outputs(archive.features)
        metadata = {**archive.metadata, "head": self.settings}
        return archive.replace(logits=logits, features=features, metadata=metadata)

    def save(self, path: str | PathLike) -> None:
        """Write the head to one safetensors file."""
        from safetensors.numpy import save_file

        arrays = {"center": self.center, "scale": np.array(self.scale)}
        for i, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            arrays |= {f"weight{i}": np.ascontiguousarray(weight), f"bias{i}": bias}
        header = {
            "settings": json.dumps(self.settings),
            "curve": json.dumps(self.curve),
        }
        with tensors_path(path) as temporary:
            save_file(arrays, temporary, metadata=header)


def hidden_and_logits(
    layers: Layers, inputs: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the last hidden activations (n, h) and the logits (n, k)."""
    hidden = inputs
    for weight, bias in layers[:-1]:
        hidden = np.maximum(hidden @ weight + bias, 0)
    return hidden, hidden @ layers[-1][0] + layers[-1][1]


def load_head(path: str | PathLike) -> Head:
    """Read a head written by :meth:`Head.save`.

    Examples
    --------
    >>> import coolhead as ch
    >>> import tempfile
    >>> data = ch.load_dataset("digits").rows(slice(0, None, 20))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = f"{folder}/head.safetensors"
    ...     ch.train_head(data, "uci", kind="logistic").save(path)
    ...     head = ch.lab.heads.load_head(path)
    ...
    >>> head.outputs(data.features[:2])[0].shape
    (2, 10)
    """
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:
        header = file.metadata() or {}
        if "curve" not in header:
            raise ValueError(f"{path} is not a head: its header has {sorted(header)}")
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    n_layers = sum(name.startswith("weight") for name in arrays)
    return Head(
        weights=tuple(arrays[f"weight{i}"] for i in range(n_layers)),
        biases=tuple(arrays[f"bias{i}"] for i in range(n_layers)),
        center=arrays["center"],
        scale=np.float32(arrays["scale"]),
        settings=json.loads(header["settings"]),
        curve=json.loads(header["curve"]),
    )
