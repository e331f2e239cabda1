"""Folders of images: `domain/class/image` trees, and DomainNet's official lists."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np

from coolhead.datasets.images import (
    BadImage,
    ImageTable,
    check_image,
    refuse_problems,
)
from coolhead.datasets.lists import find_lists, read_lists
from coolhead.datasets.sizes import canonical_domain, find_differences


def list_images(
    folder: str | os.PathLike, *, skip_bad: bool = False, decode: bool = False
) -> ImageTable:
    """All images of a data set, with labels that mean the same in every domain.

    Parameters
    ----------
    folder : a `domain/class/image` tree (Office-Home, PACS, VLCS, TerraIncognita or
        your own), or DomainNet with its `{domain}_train.txt` and `{domain}_test.txt`,
        which then decide on the labels.
    skip_bad : leave unusable files out and list them in `problems`, not refuse them.
    decode : read every pixel to find images with a damaged body; slow.

    Returns
    -------
    ImageTable, whose `differences` say where it departs from the published sizes.
    """
    root = Path(folder)
    if not root.is_dir():
        raise ValueError(f"{root} is not a folder; wanted a folder of domains")
    lists = find_lists(root)
    table = read_lists(root, lists) if lists else read_tree(root)
    table = _without_bad(table, skip_bad=skip_bad, decode=decode)
    return replace(table, differences=find_differences(table))


def read_tree(root: Path) -> ImageTable:
    """The files of a `domain/class/image` tree, not yet looked into."""
    tree = {folder.name: _folders(folder) for folder in _folders(root)}
    domains = _check_domains(root, tree)
    class_names = merge_class_names(tree)
    index = {name: label for label, name in enumerate(class_names)}
    entries = [
        (file.relative_to(root).as_posix(), index[folder.name], code)
        for code, domain in enumerate(domains)
        for folder in tree[domain]
        for file in _files(folder)
    ]
    if not entries:
        raise ValueError(f"{root} holds no images in domain/class folders")
    paths, labels, codes = zip(*entries, strict=True)
    return ImageTable(
        root=root,
        paths=np.array(paths),
        labels=np.array(labels, dtype=np.intp),
        domain_codes=np.array(codes, dtype=np.int32),
        class_names=class_names,
        domain_names=tuple(canonical_domain(name) for name in domains),
    )


def merge_class_names(tree: dict[str, list[Path]]) -> tuple[str, ...]:
    """The sorted names of all domains; names that differ only by case are refused."""
    owner: dict[str, tuple[str, str]] = {}
    for domain, folders in tree.items():
        for folder in folders:
            first, name = owner.setdefault(
                folder.name.casefold(), (domain, folder.name)
            )
            if name != folder.name:
                raise ValueError(
                    f"class names differ by case: {name!r} in {first}, "
                    f"{folder.name!r} in {domain}; wanted one spelling"
                )
    return tuple(sorted(name for _, name in owner.values()))


def _check_domains(root: Path, tree: dict[str, list[Path]]) -> list[str]:
    """Sorted names of the folders that have class folders, at least two."""
    domains = sorted(name for name, folders in tree.items() if folders)
    if not domains:
        raise ValueError(
            f"{root} is empty: found no domain/class folders; wanted "
            "domain/class/image, or DomainNet's lists"
        )
    if len(domains) == 1:
        inside = root / domains[0]
        deeper = any(_folders(folder) for folder in tree[domains[0]])
        hint = f"; did you mean {inside}?" if deeper else ""
        raise ValueError(
            f"{root} has one domain only, {domains[0]!r}; wanted at least two{hint}"
        )
    return domains


def _folders(parent: Path) -> list[Path]:
    return sorted(p for p in parent.iterdir() if p.is_dir() and p.name[0] not in "._")


def _files(folder: Path) -> list[Path]:
    """Everything visible in a class folder; folders are found out as no images."""
    hidden = ("Thumbs.db", "desktop.ini")
    visible = [p for p in folder.iterdir() if p.name[0] != "." and p.name not in hidden]
    return sorted(visible)


def _without_bad(table: ImageTable, *, skip_bad: bool, decode: bool) -> ImageTable:
    reasons = [check_image(table.root / p, decode=decode) for p in table.paths]
    good = np.array([reason is None for reason in reasons])
    problems = tuple(
        BadImage(str(path), reason)
        for path, reason in zip(table.paths, reasons, strict=True)
        if reason is not None
    )
    if problems and not skip_bad:
        refuse_problems(table.root, problems)
    table = replace(table.rows(good), problems=problems)
    empty = [name for name, size in table.domain_sizes().items() if not size]
    if empty:
        raise ValueError(f"{table.root}: domain {empty[0]!r} has no usable image")
    return table
