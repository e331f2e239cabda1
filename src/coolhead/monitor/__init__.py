"""Is this still the data that was calibrated for?"""

from coolhead.monitor.evidence import DriftSignal, Evidence
from coolhead.monitor.expected import Expected
from coolhead.monitor.monitor import DriftMonitor

__all__ = ["DriftMonitor", "DriftSignal", "Evidence", "Expected"]
