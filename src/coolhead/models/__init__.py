"""The logits of models of any library.

No library is imported here: a model that exists has imported its own.
"""

from coolhead.models.dense import dense_rows, predict_dense
from coolhead.models.reading import leaves_of, logits_from

__all__ = [
    "dense_rows",
    "leaves_of",
    "logits_from",
    "predict_dense",
]
