"""Is this still the data that was calibrated for?"""

from coolhead.monitor.evidence import DriftSignal, Finding
from coolhead.monitor.expected import Expected
from coolhead.monitor.monitor import DriftMonitor

__all__ = ["DriftMonitor", "DriftSignal", "Expected", "Finding"]
