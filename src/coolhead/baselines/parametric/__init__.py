"""A small network on the largest logits (PTS)."""

from coolhead.baselines.parametric.calibrator import ParameterizedTemperature

__all__ = ["ParameterizedTemperature"]
