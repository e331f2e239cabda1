"""Logits, features, labels and domains of one classifier, and the files of them."""

from coolhead.archive.archive import DomainArchive
from coolhead.archive.load import load_archive
from coolhead.archive.open import open_predictions
from coolhead.archive.stream import Block, stream_blocks

__all__ = [
    "Block",
    "DomainArchive",
    "load_archive",
    "open_predictions",
    "stream_blocks",
]
