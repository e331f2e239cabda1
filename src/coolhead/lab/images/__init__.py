"""Folders of images, and the way from images to features."""

from typing import TYPE_CHECKING

from coolhead.extras import lazy_names

if TYPE_CHECKING:
    from coolhead.lab.images.backbones import Backbone, load_backbone
    from coolhead.lab.images.divide import split_large_small
    from coolhead.lab.images.extraction import extract
    from coolhead.lab.images.finetuning import finetune
    from coolhead.lab.images.table import (
        BadImage,
        ImageTable,
        check_image,
        list_images,
    )
    from coolhead.lab.images.transform import ImageTransform

__getattr__, __dir__, __all__ = lazy_names(  # pyright: ignore
    "coolhead.lab.images",
    {
        "backbones": ["Backbone", "load_backbone"],
        "divide": ["split_large_small"],
        "extraction": ["extract"],
        "finetuning": ["finetune"],
        "table": ["BadImage", "ImageTable", "check_image", "list_images"],
        "transform": ["ImageTransform"],
    },
)
