"""What needs torch: features from images, fine-tuning, calibrated modules.

Names are loaded on first use, so importing this package is free.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from coolhead.torch.backbones import Backbone, load_backbone
    from coolhead.torch.extraction import extract
    from coolhead.torch.finetuning import finetune
    from coolhead.torch.module import CalibratedModule, CalibratedSoftmax
    from coolhead.torch.onnx import export_onnx
    from coolhead.torch.transform import ImageTransform

_HOMES = {
    "Backbone": "backbones",
    "CalibratedModule": "module",
    "CalibratedSoftmax": "module",
    "export_onnx": "onnx",
    "load_backbone": "backbones",
    "extract": "extraction",
    "finetune": "finetuning",
    "ImageTransform": "transform",
}

__all__ = [
    "Backbone",
    "CalibratedModule",
    "CalibratedSoftmax",
    "ImageTransform",
    "export_onnx",
    "extract",
    "finetune",
    "load_backbone",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        msg = f"module 'coolhead.torch' has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(f"coolhead.torch.{_HOMES[name]}"), name)
