"""A scikit-learn classifier with calibrated confidence."""

from coolhead.classifier.classifier import CalibratedClassifier

__all__ = ["CalibratedClassifier"]
