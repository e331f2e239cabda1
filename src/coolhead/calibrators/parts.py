"""Calibrators that are made of others."""

from collections.abc import Sequence

from coolhead.calibrators.base import Calibrator


class OfParts(Calibrator):
    """Takes what its parts take, and uses features if one of them does.

    A subclass writes `_parts`.
    """

    def _parts(self) -> Sequence[Calibrator]:
        raise NotImplementedError(f"{type(self).__name__} does not name its parts")

    @property
    def uses_features(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """True if a part uses features."""
        return any(part.uses_features for part in self._parts())

    @property
    def takes(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """What the parts take together."""
        kinds = [kind for part in self._parts() for kind in part.takes]
        return tuple(dict.fromkeys(kinds))
