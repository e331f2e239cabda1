"""Features of images that are already in memory."""

from dataclasses import replace

import numpy as np
import torch
from PIL import Image

from coolhead.models.torch import frozen
from coolhead.torch.calibrated.reading import feature_reader
from coolhead.torch.images.backbones import Backbone, load_backbone


def array_features(
    images: np.ndarray,
    backbone: Backbone | str,
    *,
    batch_size: int = 64,
    dtype: str = "float16",
    **transform: float,
) -> np.ndarray:
    """Return the (n, d) features of images (n, h, w, 3) uint8.

    Parameters
    ----------
    **transform
        Fields of the backbone's ImageTransform to change, such as ``size=112``.
    """
    if isinstance(backbone, str):
        backbone = load_backbone(backbone)
    prepare = replace(backbone.transform, **transform)
    parts = []
    module = backbone.module
    with frozen(module), feature_reader(module, backbone.feature_layer) as read:
        for start in range(0, len(images), batch_size):
            batch = images[start : start + batch_size]
            inputs = np.stack([prepare(Image.fromarray(image)) for image in batch])
            features, _ = read(torch.from_numpy(inputs))
            parts.append(features.numpy().astype(dtype))
    return np.concatenate(parts)
