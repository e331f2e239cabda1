"""Calibrators that are made of others."""

from collections.abc import Sequence

from coolhead.calibrators.base import Calibrator
from coolhead.calibrators.parameters import check_parameters


class OfParts(Calibrator):
    """Takes what its parts take, and uses features if one of them does.

    A subclass writes `_parts`.
    """

    def _parts(self) -> Sequence[Calibrator]:
        raise NotImplementedError(f"{type(self).__name__} does not name its parts")

    def _checked_parts(self) -> Sequence[Calibrator]:
        # What these parts take is asked before `fit`, which checks, too.
        check_parameters(self)
        return self._parts()

    @property
    def uses_features(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """True if a part uses features."""
        return any(part.uses_features for part in self._checked_parts())

    @property
    def takes(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """What the parts take together."""
        kinds = [kind for part in self._checked_parts() for kind in part.takes]
        return tuple(dict.fromkeys(kinds))

    @property
    def needs(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """What one of the parts cannot do without."""
        kinds = [kind for part in self._checked_parts() for kind in part.needs]
        return tuple(dict.fromkeys(kinds))
