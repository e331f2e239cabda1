"""Which rows belong to which calibration domain, and which to the source."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

FULL_SIZE = 50
SMALLEST_DOMAIN = 20
MOST_FOLDS = 10


class Domains(NamedTuple):
    """Domains of the rows of one fit.

    names : (m,) distinct domains; codes : (n,) the domain of each row;
    is_source : (m,) True for held-out data of the classifier's own source.
    """

    names: np.ndarray
    codes: np.ndarray
    is_source: np.ndarray

    def take(self, rows: np.ndarray) -> "Domains":
        """The domains of some of the rows; those without a row are forgotten."""
        kept, codes = np.unique(self.codes[rows], return_inverse=True)
        return Domains(self.names[kept], codes, self.is_source[kept])

    def all_alike(self) -> "Domains":
        """The same domains, none of them known as the source."""
        return self._replace(is_source=np.zeros(len(self.names), bool))

    @property
    def source_rows(self) -> np.ndarray:
        """(n,) True for the rows of the source."""
        return self.is_source[self.codes]

    def row_weights(self, weights: np.ndarray | None) -> np.ndarray:
        """(n,) weights that sum to one; domains count the same unless they are tiny.

        A domain of n rows counts n / (n + 50): one of a single row must not speak as
        loudly as one of thousands.
        """
        given = np.ones(len(self.codes)) if weights is None else weights
        mass = np.bincount(self.codes, given, len(self.names))
        sizes = np.bincount(self.codes, minlength=len(self.names))
        total = sizes / (sizes + FULL_SIZE)
        per_row = np.where(mass > 0, total / np.where(mass > 0, mass, 1.0), 0.0)
        row_weights = given * per_row[self.codes]
        return row_weights / row_weights.sum()


def find_domains(
    sample_domain: ArrayLike | None, source_domain: Any, n_rows: int | None = None
) -> Domains:
    """Codes of the domains; rows of `source_domain` (a name or a list) are the source.

    Where `sample_domain` is None all `n_rows` rows are one domain.
    """
    if sample_domain is None:
        if source_domain is not None:
            raise ValueError(
                f"source_domain is {source_domain!r} but sample_domain is missing; "
                "wanted the domain of each row"
            )
        codes = np.zeros(n_rows or 0, np.intp)
        return Domains(np.array(["all"]), codes, np.zeros(1, bool))
    names, codes = np.unique(np.asarray(sample_domain), return_inverse=True)
    wanted = [] if source_domain is None else np.atleast_1d(source_domain).tolist()
    wanted = [str(name) for name in wanted]
    known = [str(name) for name in names]
    missing = [name for name in wanted if name not in known]
    if missing:
        raise ValueError(
            f"source_domain names {', '.join(missing)}, which sample_domain does not "
            f"hold; wanted some of {', '.join(known)}"
        )
    return Domains(names, codes, np.isin(known, wanted))


def refuse_source(calibrator: Any, source_domain: Any) -> None:
    """Rows of the source would be mistaken for those of a calibration domain."""
    if source_domain is not None and "source" not in calibrator.takes:
        raise ValueError(
            f"source_domain is {source_domain!r}, but {type(calibrator).__name__} "
            "treats all domains alike; wanted rows of the calibration domains alone"
        )


class Fold(NamedTuple):
    """(n,) masks of the rows to fit on and of those left out, and whose they are."""

    name: str
    inside: np.ndarray
    outside: np.ndarray


def leave_one_out(domains: Domains) -> Iterator[Fold]:
    """Leave out each calibration domain once; many domains in ten groups.

    The source is never left out, nor is a domain too small to tell anything. Nothing
    is yielded where fewer than two domains remain.
    """
    sizes = np.bincount(domains.codes, minlength=len(domains.names))
    usable = np.flatnonzero(~domains.is_source & (sizes >= SMALLEST_DOMAIN))
    if len(usable) < 2:
        return
    usable = usable[np.argsort(-sizes[usable], kind="stable")]
    for first in range(min(MOST_FOLDS, len(usable))):
        group = np.sort(usable[first::MOST_FOLDS])
        outside = np.isin(domains.codes, group)
        name = "+".join(str(domains.names[code]) for code in group)
        yield Fold(name, ~outside, outside)
