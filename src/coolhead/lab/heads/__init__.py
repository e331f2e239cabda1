"""Train a classifier on features: with scikit-learn alone, or with torch."""

from coolhead.lab.heads.head import Head, load_head
from coolhead.lab.heads.train import train_head

__all__ = ["Head", "load_head", "train_head"]
