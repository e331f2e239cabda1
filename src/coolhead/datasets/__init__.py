"""Bundled real data, and simulated domains."""

from typing import TYPE_CHECKING

from coolhead.extras import lazy_names

if TYPE_CHECKING:
    from coolhead.datasets.bundled import load_dataset
    from coolhead.datasets.simulated import simulate_domains

__getattr__, __dir__, __all__ = lazy_names(  # pyright: ignore
    "coolhead.datasets",
    {"bundled": ["load_dataset"], "simulated": ["simulate_domains"]},
    moved={
        name: f"coolhead.lab.images.{name}"
        for name in (
            "BadImage",
            "ImageTable",
            "check_image",
            "list_images",
            "split_large_small",
        )
    },
)
