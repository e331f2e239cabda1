"""Files of predictions: opened without reading, read block by block, written whole."""

from coolhead.predictions.blocks import Block, stream_blocks
from coolhead.predictions.loading import load_predictions
from coolhead.predictions.opening import open_predictions

__all__ = ["Block", "load_predictions", "open_predictions", "stream_blocks"]
