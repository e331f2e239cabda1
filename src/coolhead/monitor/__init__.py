"""Do new rows still resemble the data that was calibrated for?"""

from coolhead.monitor.expected import Expected
from coolhead.monitor.monitor import DriftMonitor
from coolhead.monitor.verdict import DriftSignal, Finding

__all__ = ["DriftMonitor", "DriftSignal", "Expected", "Finding"]
