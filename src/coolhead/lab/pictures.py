"""Small pictures of the rows of an experiment, for data that are images."""

from base64 import b64encode
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from coolhead.lab.protocol import (
    ArchiveData,
    BundledData,
    Data,
    FormationsData,
    TrainedData,
)

# Largest number of characters of a thumbnail: hundreds fit into a page.
LARGEST = 1024
SIDES = (40, 32, 24, 16, 8)
COLOURS = 16

Pictures = Callable[[int, str], str | None]


def find_pictures(data: Data) -> Pictures | None:
    """Return a function of (row number, id) that gives a PNG in base64, or None.

    None where the data have no pictures. A file that cannot be read has no picture;
    the numbers of the experiment do not depend on it.
    """
    if isinstance(data, BundledData) and data.dataset == "digits":
        return _digits()
    if isinstance(data, FormationsData):
        return lambda row, _: thumbnail(_formation(data, row))
    if isinstance(data, ArchiveData | TrainedData) and data.images is not None:
        folder = data.images
        return lambda _, name: _from_file(folder / name)
    return None


def thumbnail(image: Image.Image) -> str:
    """Return a PNG in base64 of at most `LARGEST` characters, as large as fits."""
    text = ""
    for side in SIDES:
        small = image.copy()
        small.thumbnail((side, side))
        if small.mode != "L":
            small = small.convert("RGB").quantize(COLOURS)
        target = BytesIO()
        small.save(target, "PNG", optimize=True)
        text = b64encode(target.getvalue()).decode()
        if len(text) <= LARGEST:
            break
    return text


def _digits() -> Pictures:
    from coolhead.datasets import load_dataset

    features: Any = load_dataset("digits").features

    def draw(row: int, _: str) -> str:
        pixels = np.rint(features[row].reshape(16, 16) * 255).astype(np.uint8)
        return thumbnail(Image.fromarray(pixels))

    return draw


def _formation(data: FormationsData, row: int) -> Image.Image:
    from coolhead.lab.formations import formation_image

    code, number = divmod(row, data.n_images)
    return Image.fromarray(
        formation_image(code, number, random_state=data.random_state)
    )


def _from_file(path: Path) -> str | None:
    try:
        with Image.open(path) as image:
            return thumbnail(image.convert("RGB"))
    except OSError:
        return None
