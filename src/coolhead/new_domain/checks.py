"""What `NewDomain` accepts."""

from collections.abc import Sequence

KINDS = ("left_out", "batch", "labels")


def check_use(use: Sequence[str]) -> tuple[str, ...]:
    kinds = (use,) if isinstance(use, str) else tuple(use)
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        raise ValueError(
            f"evidence {unknown[0]!r} is not known; wanted some of {', '.join(KINDS)}"
        )
    return kinds
