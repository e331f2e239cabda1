"""Which domain plays which role."""

from dataclasses import asdict, dataclass
from itertools import combinations

from coolhead.experiment.protocol import Roles


@dataclass(frozen=True, order=True)
class Split:
    """Domains that train the classifier, calibrate it, and test it unseen."""

    source: tuple[str, ...]
    calibration: tuple[str, ...]
    target: tuple[str, ...]

    @property
    def name(self) -> str:
        """Short name as in the paper's tables, for example ``Art+Real > Clipart``."""
        return f"{'+'.join(self.source)} > {'+'.join(self.target)}"

    def as_lists(self) -> dict[str, list[str]]:
        """The roles as JSON-ready lists."""
        return {role: list(domains) for role, domains in asdict(self).items()}


def make_splits(roles: Roles) -> list[Split]:
    """All splits of a protocol, ordered by target, then by source.

    ``arrangement="all"`` takes every choice of targets and sources; the rest (or
    every choice of `calibration` domains out of it) calibrates.
    ``arrangement="cyclic"`` turns the list of domains once around, so that each
    domain plays each role equally often; it keeps 10 domains at 10 splits.
    """
    if roles.arrangement == "cyclic":
        return _cyclic_splits(roles)
    splits = []
    for target in combinations(roles.domains, roles.target):
        others = [domain for domain in roles.domains if domain not in target]
        for source in combinations(others, roles.source):
            rest = [domain for domain in others if domain not in source]
            splits += [
                Split(source, calibration, target)
                for calibration in _calibration_choices(roles, source, rest)
            ]
    return splits


def _calibration_choices(
    roles: Roles, source: tuple[str, ...], rest: list[str]
) -> list[tuple[str, ...]]:
    if roles.calibrate_on == "source":
        return [source]
    return list(combinations(rest, roles.calibration))


def _cyclic_splits(roles: Roles) -> list[Split]:
    splits = []
    for start in range(len(roles.domains)):
        turned = roles.domains[start:] + roles.domains[:start]
        source, rest = turned[: roles.source], turned[roles.source :]
        if roles.calibrate_on == "source":
            calibration, rest = source, rest
        else:
            calibration, rest = rest[: roles.calibration], rest[roles.calibration :]
        splits.append(Split(source, calibration, rest[: roles.target]))
    return splits
