"""The published sizes of the usual data sets, to compare a user's folder with."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from coolhead.datasets.images import ImageTable


@dataclass(frozen=True)
class PublishedSizes:
    """Sizes by domain; None where the sources do not agree on them."""

    name: str
    n_classes: int
    sizes: dict[str, int | None]
    test_sizes: dict[str, int] | None = None


PUBLISHED = (
    PublishedSizes(
        "Office-Home",
        65,
        {"Art": 2427, "Clipart": 4365, "Product": 4439, "Real World": 4357},
    ),
    PublishedSizes(
        "DomainNet (cleaned)",
        345,
        {
            "clipart": 48129,
            "infograph": 51605,
            "painting": 72266,
            "quickdraw": 172500,
            "real": 172947,
            "sketch": 69128,
        },
        {
            "clipart": 14604,
            "infograph": 15582,
            "painting": 21850,
            "quickdraw": 51750,
            "real": 52041,
            "sketch": 20916,
        },
    ),
    PublishedSizes(
        "PACS",
        7,
        {"art_painting": 2048, "cartoon": 2344, "photo": 1670, "sketch": 3929},
    ),
    PublishedSizes(
        "VLCS",
        5,
        {"Caltech101": 1415, "LabelMe": 2656, "SUN09": 3282, "VOC2007": 3376},
    ),
    PublishedSizes(
        "TerraIncognita",
        10,
        dict.fromkeys(("location_38", "location_43", "location_46", "location_100")),
    ),
)


def canonical_domain(name: str) -> str:
    """Office-Home's fourth folder is found under two spellings."""
    return "Real World" if _plain(name) == "realworld" else name


def find_differences(table: ImageTable) -> tuple[str, ...]:
    """How a table differs from the published set whose domains it has, in words."""
    own = {_plain(name): name for name in table.domain_names}
    for published in PUBLISHED:
        theirs = {_plain(name): name for name in published.sizes}
        if len(own.keys() & theirs.keys()) >= 2 and own.keys() <= theirs.keys():
            known = {own[key]: theirs[key] for key in own}
            return tuple(_differences(table, published, known))
    return tuple(_missing_classes(table))


def _differences(
    table: ImageTable, published: PublishedSizes, known: dict[str, str]
) -> Iterator[str]:
    title = published.name
    for name in sorted(published.sizes.keys() - known.values()):
        yield f"{title}: domain {name} is missing"
    if len(table.class_names) != published.n_classes:
        found = len(table.class_names)
        yield f"{title}: {found} classes, published {published.n_classes}"
    for domain, size in table.domain_sizes().items():
        wanted = published.sizes[known[domain]]
        if wanted is not None and size != wanted:
            yield f"{title}: {domain} has {size} images, published {wanted}"
    if table.roles is not None and published.test_sizes is not None:
        for domain, size in table.only("test").domain_sizes().items():
            wanted = published.test_sizes[known[domain]]
            if size != wanted:
                yield f"{title}: {domain} test list has {size}, published {wanted}"
    yield from _missing_classes(table)


def _missing_classes(table: ImageTable) -> Iterator[str]:
    """Classes without images in some domain, or in one of its lists."""
    roles = ("",) if table.roles is None else ("train", "test")
    for code, domain in enumerate(table.domain_names):
        for role in roles:
            rows = table.domain_codes == code
            if table.roles is not None:
                rows = rows & (table.roles == role)
            present = np.bincount(table.labels[rows], minlength=len(table.class_names))
            missing = np.flatnonzero(present == 0)
            if len(missing):
                names = ", ".join(f"{table.class_names[c]} ({c})" for c in missing[:5])
                more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
                yield f"{f'{domain} {role}'.strip()} has no images of {names}{more}"


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.casefold())
