"""Which rows belong to which calibration domain, and which to the source."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np


class Domains(NamedTuple):
    """Domains of the rows of one fit.

    names : (m,) distinct domains; codes : (n,) the domain of each row;
    is_source : (m,) True for held-out data of the classifier's own source.
    """

    names: np.ndarray
    codes: np.ndarray
    is_source: np.ndarray

    @property
    def source_rows(self) -> np.ndarray:
        """(n,) True for the rows of the source."""
        return self.is_source[self.codes]

    def share(self, weights: np.ndarray | None) -> np.ndarray:
        """(n,) weights that sum to one and give every domain the same total."""
        given = np.ones(len(self.codes)) if weights is None else weights
        mass = np.bincount(self.codes, given, len(self.names))
        per_row = np.where(mass > 0, 1 / np.where(mass > 0, mass, 1.0), 0.0)
        share = given * per_row[self.codes]
        return share / share.sum()


def find_domains(
    sample_domain: Any, source_domain: Any, n_rows: int | None = None
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


def leave_one_out(domains: Domains) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(n,) masks of the rows to fit on and of the one domain left out.

    The source is never left out; nothing is yielded for fewer than two other domains.
    """
    others = np.flatnonzero(~domains.is_source)
    if len(others) < 2:
        return
    for code in others:
        left_out = domains.codes == code
        yield ~left_out, left_out
