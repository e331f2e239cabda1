"""Calibrators: one family per file; each learns a temperature T(x) > 0."""
