"""DomainNet's official lists: lines of `path label`, one file per domain and role."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from coolhead.datasets.images import ImageTable

ROLES = ("train", "test")


def find_lists(root: Path) -> dict[str, dict[str, Path]]:
    """For every domain its train and test list; empty where there are no lists."""
    found: dict[str, dict[str, Path]] = {}
    for role in ROLES:
        for path in sorted(root.glob(f"*_{role}.txt")):
            found.setdefault(path.name.removesuffix(f"_{role}.txt"), {})[role] = path
    for domain, lists in found.items():
        for role in ROLES:
            if role not in lists:
                raise ValueError(
                    f"{root} has no {domain}_{role}.txt; wanted the train and the test "
                    "list of every domain"
                )
    if len(found) == 1:
        raise ValueError(
            f"{root} has lists of one domain only, {next(iter(found))!r}; wanted at "
            "least two"
        )
    return dict(sorted(found.items()))


def read_lists(root: Path, lists: dict[str, dict[str, Path]]) -> ImageTable:
    """The table that the lists describe: labels come from them, never from folders."""
    paths, labels, codes, roles = [], [], [], []
    for code, by_role in enumerate(lists.values()):
        for role in ROLES:
            for path, label in _read_list(by_role[role]):
                paths.append(path)
                labels.append(label)
                codes.append(code)
                roles.append(role)
    if not paths:
        raise ValueError(f"the lists in {root} are empty")
    _refuse_doubles(paths)
    return ImageTable(
        root=root,
        paths=np.array(paths),
        labels=np.array(labels, dtype=np.intp),
        domain_codes=np.array(codes, dtype=np.int32),
        class_names=_class_names(paths, labels),
        domain_names=tuple(lists),
        roles=np.array(roles),
    )


def _read_list(path: Path) -> Iterator[tuple[str, int]]:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text ({error})") from error
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        image, _, label = line.strip().rpartition(" ")
        if not image or not label.isdecimal():
            raise ValueError(
                f"{path}, line {number}: found {line!r}; wanted 'domain/class/image "
                "label'"
            )
        yield image, int(label)


def _refuse_doubles(paths: list[str]) -> None:
    seen: set[str] = set()
    for path in paths:
        if path in seen:
            raise ValueError(
                f"{path} is listed twice; a test image that was trained on would make "
                "every number too good"
            )
        seen.add(path)


def _class_names(paths: list[str], labels: list[int]) -> tuple[str, ...]:
    """The class folder of every label, which must be one folder and no gap."""
    names: dict[int, str] = {}
    owner: dict[str, int] = {}
    for path, label in zip(paths, labels, strict=True):
        parent = Path(path).parent.name
        name = names.setdefault(label, parent)
        if name != parent:
            raise ValueError(
                f"label {label} stands for {name!r} and for {parent!r} ({path}); "
                "wanted one class folder per label"
            )
        if owner.setdefault(parent.casefold(), label) != label:
            raise ValueError(
                f"class {parent!r} has the labels {owner[parent.casefold()]} and "
                f"{label} ({path}); wanted one"
            )
    missing = sorted(set(range(max(names) + 1)) - set(names))
    if missing:
        raise ValueError(
            f"label gap: no list has label {missing[0]} ({len(missing)} missing), "
            f"but labels go up to {max(names)}"
        )
    return tuple(names[label] for label in range(len(names)))
