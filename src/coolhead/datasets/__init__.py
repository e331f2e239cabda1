"""Bundled real data, image folders that users bring, simulated sites, and division."""

from coolhead.datasets.bundled import load_dataset
from coolhead.datasets.divide import split_large_small
from coolhead.datasets.folders import list_images
from coolhead.datasets.images import BadImage, ImageTable, check_image
from coolhead.datasets.simulated import simulate_domains

__all__ = [
    "ImageTable",
    "BadImage",
    "check_image",
    "list_images",
    "load_dataset",
    "simulate_domains",
    "split_large_small",
]
