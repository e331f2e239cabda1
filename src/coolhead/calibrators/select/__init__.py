"""Choosing between calibrators by domains they did not see."""

from coolhead.calibrators.select.calibrator import LeaveOneDomainOut, SelectByDomain

__all__ = ["LeaveOneDomainOut", "SelectByDomain"]
