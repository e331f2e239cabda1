"""A scikit-learn classifier and its calibrator behind one `fit(X, y)`."""

from coolhead.calibrators.classifier.classifier import CalibratedClassifier

__all__ = ["CalibratedClassifier"]
