"""The logits of a model of any make: one file for each family.

None of the families is imported here; a model that exists brought its own.
"""

from coolhead.models.dense import dense_rows, predict_dense
from coolhead.models.reading import leaves_of, logits_from

__all__ = [
    "dense_rows",
    "leaves_of",
    "logits_from",
    "predict_dense",
]
