"""What needs torch: features from images, fine-tuning, calibrated modules.

Names are loaded on first use, so importing this package is free.
"""

from typing import TYPE_CHECKING

from coolhead.lazy import lazy_names

if TYPE_CHECKING:
    from coolhead.torch.calibrated.collecting import calibrate, collect_predictions
    from coolhead.torch.calibrated.module import CalibratedModule
    from coolhead.torch.calibrated.onnx import export_onnx
    from coolhead.torch.calibrated.softmax import CalibratedSoftmax
    from coolhead.torch.images.backbones import Backbone, load_backbone
    from coolhead.torch.images.extraction import extract
    from coolhead.torch.images.finetuning import finetune
    from coolhead.torch.images.transform import ImageTransform

__getattr__, __dir__, __all__ = lazy_names(  # pyright: ignore
    "coolhead.torch",
    {
        "calibrated.collecting": ["calibrate", "collect_predictions"],
        "calibrated.module": ["CalibratedModule"],
        "calibrated.onnx": ["export_onnx"],
        "calibrated.softmax": ["CalibratedSoftmax"],
        "images.backbones": ["Backbone", "load_backbone"],
        "images.extraction": ["extract"],
        "images.finetuning": ["finetune"],
        "images.transform": ["ImageTransform"],
    },
)
