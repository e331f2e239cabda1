"""From an image file to the array a network wants; Pillow and NumPy only."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import ExifTags, Image

INTERPOLATIONS = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
}
# What a camera notes in EXIF, and what turns the stored pixels upright.
TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


@dataclass(frozen=True)
class ImageTransform:
    """Upright, central square crop, one resize, then ``(pixel / 255 - mean) / std``.

    Attributes
    ----------
    size : int
        Side of the result in pixels.
    crop : float in (0, 1]
        Side of the crop as a share of the image's shorter side (nearly: see
        `centre_box`).
    mean, std : (3,) floats
        Per channel, on the scale where white is 1.
    interpolation : {"bicubic", "bilinear", "nearest"}
    reducing_gap : float or None
        A JPEG is decoded at a reduced scale that leaves at least this many times the
        pixels wanted; None decodes all pixels.

    Examples
    --------
    >>> import coolhead as ch
    >>> from PIL import Image
    >>> transform = ch.lab.images.ImageTransform(size=32)
    >>> transform(Image.new("RGB", (64, 48))).shape
    (3, 32, 32)
    """

    size: int = 224
    crop: float = 0.875
    mean: tuple[float, float, float] = (0.485, 0.456, 0.406)
    std: tuple[float, float, float] = (0.229, 0.224, 0.225)
    interpolation: str = "bicubic"
    reducing_gap: float | None = 2.0

    def __post_init__(self) -> None:
        if self.size < 1 or not 0 < self.crop <= 1:
            found = f"{self.size}, {self.crop}"
            raise ValueError(
                f"size must be at least 1 and crop in (0, 1]; found {found}"
            )
        if self.interpolation not in INTERPOLATIONS:
            known = ", ".join(INTERPOLATIONS)
            raise ValueError(
                f"interpolation must be one of {known}; found {self.interpolation!r}"
            )
        if self.reducing_gap is not None and not self.reducing_gap >= 1:
            raise ValueError(
                f"reducing_gap must be at least 1, or None; found {self.reducing_gap}"
            )

    def __call__(self, image: Image.Image) -> np.ndarray:
        """Return the (3, size, size) float32 array of one image."""
        return self.from_box(image, self.centre_box(upright_size(image)))

    def centre_box(self, size: tuple[int, int]) -> tuple[float, float, float, float]:
        """Return the part of an image of (width, height) that is used.

        It is what remains of resizing the shorter side to ``floor(size / crop)`` and
        cutting the centre out, in whole pixels, as torchvision and timm do.
        """
        shorter = int(self.size / self.crop)
        edges = []
        for length in size:
            resized = int(shorter * length / min(size))
            start = round((resized - self.size) / 2)
            edges.append((start * length / resized, self.size * length / resized))
        (left, width), (top, height) = edges
        # Rounding may lead outside by 1e-13, which Pillow refuses.
        return left, top, min(left + width, size[0]), min(top + height, size[1])

    def from_box(
        self, image: Image.Image, box: tuple[float, float, float, float]
    ) -> np.ndarray:
        """Return the (3, size, size) float32 array of one part of the upright image."""
        shape = (self.size, self.size)
        box = self._decode_smaller(image, box)
        turn = TURNS.get(orientation(image))
        whole = to_rgb(image if turn is None else image.transpose(turn))
        # Cropping and resizing in one step resamples the pixels once only.
        small = whole.resize(shape, INTERPOLATIONS[self.interpolation], box)
        pixels = np.asarray(small, np.float32).transpose(2, 0, 1) / 255
        mean = np.array(self.mean, np.float32)[:, None, None]
        std = np.array(self.std, np.float32)[:, None, None]
        return np.ascontiguousarray((pixels - mean) / std)

    def _decode_smaller(
        self, image: Image.Image, box: tuple[float, float, float, float]
    ) -> tuple[float, float, float, float]:
        """Let a JPEG decode at 1/2, 1/4 or 1/8 where enough pixels remain; the new box.

        The decoder then leaves out the frequencies that the resize would remove, and
        most of the work.
        """
        full = image.size
        if self.reducing_gap is None or image.format != "JPEG":
            return box
        wanted = self.reducing_gap * self.size
        ratio = min(box[2] - box[0], box[3] - box[1]) / wanted
        image.draft(None, (int(full[0] / ratio), int(full[1] / ratio)))
        # Sizes are rounded up, so their quotient is not quite the decoder's scale.
        scale = round(full[0] / image.size[0])
        width, height = upright_size(image)
        left, top, right, bottom = (edge / scale for edge in box)
        return left, top, min(right, width), min(bottom, height)

    def settings(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return asdict(self) | {"mean": list(self.mean), "std": list(self.std)}


def orientation(image: Image.Image) -> int:
    """Return the camera's note in EXIF, 1 to 8; 1 where there is none to be read."""
    if image.format != "JPEG":
        image.load()  # A body cut off must not pass for a damaged note.
    try:
        found = image.getexif().get(ExifTags.Base.Orientation)
    # Damaged notes of a camera are no reason to lose its picture.
    except Exception:
        return 1
    return found if found in TURNS else 1


def upright_size(image: Image.Image) -> tuple[int, int]:
    """Return (width, height) of the image as it is to be seen."""
    width, height = image.size
    return (height, width) if orientation(image) >= 5 else (width, height)


def to_rgb(image: Image.Image) -> Image.Image:
    """Return the image in three channels; transparency shows the stored colour."""
    if image.mode == "P" and "transparency" in image.info:
        image = image.convert("RGBA")
    if image.mode.startswith("I") or image.mode == "F":
        # Pillow clips deep grey images instead of scaling them.
        values = np.asarray(image, np.float64)
        top = 65535.0 if values.max() > 255 else 255.0
        image = Image.fromarray((values * (255 / top)).clip(0, 255).astype(np.uint8))
    return image if image.mode == "RGB" else image.convert("RGB")


def read_image(
    path: Path, transform: Callable[[Image.Image], np.ndarray]
) -> np.ndarray | str:
    """Return the array of an image file, or in words why there is none."""
    try:
        with Image.open(path) as image:
            return transform(image)
    # Pillow's readers raise many kinds of errors on damaged files.
    except Exception as error:
        return f"unreadable ({type(error).__name__}: {error})"


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
