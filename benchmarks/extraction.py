"""What an image costs on its way to features, and what each shortcut changes.

Every way runs over the same images in turn, several times: CPU time per image, median
and best; then how far its features are from those of the first way, which was coolhead
0.1's. Last, whether decoding JPEGs at a reduced scale changes what the network sees by
more than the resize's own filter does, bicubic against Lanczos.

    python benchmarks/extraction.py office-home/ --images 200
"""

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from coolhead.lab.images import Backbone, ImageTransform, list_images, load_backbone
from coolhead.lab.images import transform as transforms
from coolhead.lab.images.extraction import open_network, read_batches
from coolhead.lab.images.table import check_image
from coolhead.lab.images.transform import read_image
from coolhead.models.libraries import frozen
from coolhead.torch.features import feature_reader

BATCH = 64
ALL = {"reducing_gap": None}
LANCZOS = {**ALL, "interpolation": "lanczos"}
# The layout of a batch, and what differs from the network's own transform.
WAYS = {
    "torch, contiguous, all pixels (0.1)": ("contiguous", ALL),
    "torch, contiguous": ("contiguous", {}),
    "torch, channels last, all pixels": ("channels last", ALL),
    "torch, channels last (default)": ("channels last", {}),
    "for comparison: the same, all pixels by Lanczos' filter": (
        "channels last",
        LANCZOS,
    ),
}
transforms.INTERPOLATIONS["lanczos"] = Image.Resampling.LANCZOS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--backbone", default="efficientnet-lite0")
    parser.add_argument("--images", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    paths = choose(options.folder, options.images)
    network = load_backbone(options.backbone)
    print(f"{len(paths)} images, {options.backbone}, {options.workers} workers")
    found = {
        "images": len(paths),
        "extraction": measure_ways(network, paths, options.rounds, options.workers),
        "before": measure_checks(paths),
        "reduced scale": compare_filters(network.transform, paths),
    }
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


def choose(folder: Path, n_images: int) -> list[Path]:
    images = list_images(folder, skip_bad=True)
    rows = np.random.default_rng(1).choice(len(images), n_images, replace=False)
    return [images.root / path for path in images.paths[np.sort(rows)]]


def measure_ways(
    network: Backbone, paths: list[Path], rounds: int, workers: int
) -> list[dict]:
    cost: dict[str, list[float]] = {name: [] for name in WAYS}
    features: dict[str, np.ndarray] = {}
    for _ in range(rounds):
        for name, (layout, changes) in WAYS.items():
            transform = replace(network.transform, **changes)
            run = contiguous if layout == "contiguous" else channels_last
            seconds, features[name] = run(
                replace(network, transform=transform), paths, workers
            )
            cost[name].append(1e3 * seconds / len(paths))
    first = next(iter(WAYS))
    largest = float(np.abs(features[first]).max())
    print(f"\nfeatures go up to {largest:.3g}\n")
    print(
        "| way | ms of CPU, median | best | times less | features: largest difference"
    )
    print("|---|---|---|---|---|")
    table = []
    for name, taken in cost.items():
        row = {
            "way": name,
            "median": float(np.median(taken)),
            "best": min(taken),
            "ratio": float(np.median(cost[first]) / np.median(taken)),
            "difference": float(np.abs(features[name] - features[first]).max()),
            "rms": float(np.sqrt(np.mean((features[name] - features[first]) ** 2))),
        }
        table.append(row)
        print(
            f"| {name} | {row['median']:.1f} | {row['best']:.1f} | {row['ratio']:.1f} "
            f"| {row['difference']:.2g} | {row['rms']:.2g} |"
        )
    return table


def contiguous(network: Backbone, paths: list[Path], workers: int) -> tuple:
    """Seconds and features as version 0.1 got them."""
    module = network.module
    with frozen(module), feature_reader(module) as read:
        start = time.process_time()
        batches = read_batches(paths, BATCH, network.transform, workers)
        parts = [read(torch.from_numpy(batch.values))[0].numpy() for batch in batches]
        return time.process_time() - start, np.concatenate(parts)


def channels_last(network: Backbone, paths: list[Path], workers: int) -> tuple:
    """Seconds and features as `extract` gets them."""
    with open_network(network) as run:
        start = time.process_time()
        batches = read_batches(paths, BATCH, network.transform, workers)
        parts = [run(batch.values)[0].numpy() for batch in batches]
        return time.process_time() - start, np.concatenate(parts)


def measure_checks(paths: list[Path]) -> dict[str, float]:
    """What is done before: a look into every file, and the checksum of its bytes."""
    import hashlib

    looks: dict[str, Callable[[Path], object]] = {
        "header": check_image,
        "body": lambda path: check_image(path, decode=True),
        "checksum": lambda path: hashlib.sha256(path.read_bytes()).digest(),
    }
    found = {}
    for name, look in looks.items():
        start = time.process_time()
        for path in paths:
            look(path)
        found[name] = 1e3 * (time.process_time() - start) / len(paths)
    told = ", ".join(f"{name} {value:.2f}" for name, value in found.items())
    print(f"\nms of CPU per image before that: {told}")
    return found


def compare_filters(transform: ImageTransform, paths: list[Path]) -> dict[str, float]:
    """Root mean square of the change in grey levels, per image."""
    spread = 255 * np.array(transform.std, np.float32)[:, None, None]
    full = replace(transform, **ALL)

    def changes(other: ImageTransform) -> np.ndarray:
        pairs = ((read_image(path, full), read_image(path, other)) for path in paths)
        return np.array([np.sqrt(np.mean((spread * (a - b)) ** 2)) for a, b in pairs])

    reduced, lanczos = (
        changes(transform),
        changes(replace(full, **LANCZOS)),
    )
    found = {
        "reduced, mean": float(reduced.mean()),
        "reduced, largest": float(reduced.max()),
        "Lanczos, mean": float(lanczos.mean()),
        "share of images changed more than by Lanczos": float(
            (reduced > lanczos).mean()
        ),
    }
    print("\nchange of what the network sees, in grey levels (rms):")
    for name, value in found.items():
        print(f"- {name}: {value:.3f}")
    return found


if __name__ == "__main__":
    main()
