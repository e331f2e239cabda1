"""Calibrators as torch modules and ONNX graphs."""
