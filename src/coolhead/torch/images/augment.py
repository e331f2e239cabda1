"""Random crops and flips, drawn from a seed per image."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

from coolhead.torch.images.transform import ImageTransform, read_image, upright_size

Reader = Callable[[int, Path, ImageTransform], "np.ndarray | str"]


def read_plain(row: int, path: Path, transform: ImageTransform) -> np.ndarray | str:
    """Read an image as it is used for prediction."""
    return read_image(path, transform)


def read_augmented(seeds: np.ndarray) -> Reader:
    """Return a reader that crops and flips image `row` by ``seeds[row]``.

    A seed per image makes the result independent of which thread reads it when.
    """

    def read(row: int, path: Path, transform: ImageTransform) -> np.ndarray | str:
        rng = np.random.default_rng(seeds[row])

        def augmented(image: Image.Image) -> np.ndarray:
            mirrored = rng.random() < 0.5
            box = random_box(upright_size(image), transform.crop, rng)
            pixels = transform.from_box(image, box)
            return pixels[:, :, ::-1] if mirrored else pixels

        return read_image(path, augmented)

    return read


def random_box(
    size: tuple[int, int], crop: float, rng: np.random.Generator
) -> tuple[float, float, float, float]:
    """Return a square box of side `crop` × the shorter side, anywhere inside."""
    side = crop * min(size)
    left, top = (rng.random() * (length - side) for length in size)
    return left, top, left + side, top + side
