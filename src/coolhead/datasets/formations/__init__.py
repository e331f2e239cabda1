"""Simulated formations: a stand-in for data that was never published."""
