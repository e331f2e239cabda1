"""Temperatures that know how far a sample lies from the training data."""

from coolhead.calibrators.shift_aware.calibrator import ShiftAwareTemperature

__all__ = ["ShiftAwareTemperature"]
