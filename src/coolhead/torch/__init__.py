"""Calibrated torch modules, and their export to ONNX.

Names are imported on first use, so importing this package is free.
"""

from typing import TYPE_CHECKING

from coolhead.extras import lazy_names

if TYPE_CHECKING:
    from coolhead.torch.collect import calibrate, collect_predictions
    from coolhead.torch.module import CalibratedModule
    from coolhead.torch.onnx import export_onnx
    from coolhead.torch.softmax import CalibratedSoftmax

__getattr__, __dir__, __all__ = lazy_names(  # pyright: ignore
    "coolhead.torch",
    {
        "collect": ["calibrate", "collect_predictions"],
        "module": ["CalibratedModule"],
        "onnx": ["export_onnx"],
        "softmax": ["CalibratedSoftmax"],
    },
    moved={
        name: f"coolhead.lab.images.{name}"
        for name in ("Backbone", "ImageTransform", "extract", "finetune")
    }
    | {"load_backbone": "coolhead.lab.images.load_backbone"},
)
