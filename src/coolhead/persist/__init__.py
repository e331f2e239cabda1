"""Fitted calibrators as files that cannot run code: skops, never pickle.

A file is a zip archive: what skops writes, and `coolhead.json` with the version of
the format, the class and the metadata, so it can be read without loading anything.
"""

from coolhead.persist.calibrators import load_calibrator, save_calibrator
from coolhead.persist.container import HEADER, read_header
from coolhead.persist.trial import predicts_from_logits

__all__ = [
    "HEADER",
    "load_calibrator",
    "predicts_from_logits",
    "read_header",
    "save_calibrator",
]
