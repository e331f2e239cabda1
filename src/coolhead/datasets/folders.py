"""Folders of images: `domain/class/image` trees, and DomainNet's official lists."""

import os
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from joblib import cpu_count

from coolhead.datasets.images import (
    IMAGE_SUFFIXES,
    BadImage,
    ImageTable,
    check_image,
    refuse_problems,
)
from coolhead.datasets.levels import loose_images, subfolders, wrong_level
from coolhead.datasets.lists import find_lists, read_lists
from coolhead.datasets.sizes import canonical_domain, find_differences
from coolhead.progress import progress_bar


def list_images(
    folder: str | os.PathLike,
    *,
    skip_bad: bool = False,
    decode: bool = False,
    workers: int | None = None,
    progress: bool = False,
) -> ImageTable:
    """All images of a data set, with labels that mean the same in every domain.

    Parameters
    ----------
    folder : a `domain/class/image` tree (Office-Home, PACS, VLCS, TerraIncognita or
        your own), or DomainNet with its `{domain}_train.txt` and `{domain}_test.txt`,
        which then decide on the labels.
    skip_bad : leave unusable files out and list them in `problems`, not refuse them.
    decode : read whole files to find images with a damaged body: some 1.5 ms each.
    workers : threads that look into files, by default one per core.

    Returns
    -------
    ImageTable, whose `differences` say where it departs from the published sizes.

    Examples
    --------
    >>> import coolhead as ch
    >>> import tempfile
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("photo/cat", "photo/dog", "sketch/cat", "sketch/dog"):
    ...         Path(folder, name).mkdir(parents=True)
    ...         Image.new("RGB", (64, 64)).save(Path(folder, name, "1.png"))
    ...     images = ch.datasets.list_images(folder)
    ...
    >>> len(images.paths), images.domain_names, images.labels.tolist()
    (4, ('photo', 'sketch'), [0, 1, 0, 1])
    """
    root = Path(folder)
    if not root.is_dir():
        raise ValueError(f"{root} is not a folder; wanted a folder of domains")
    lists = find_lists(root)
    table = read_lists(root, lists) if lists else read_tree(root)
    paths = [root / path for path in table.paths]
    with (
        ThreadPoolExecutor(workers or cpu_count()) as pool,
        progress_bar("looking", len(paths), shown=progress) as advance,
    ):
        reasons = []
        for reason in pool.map(partial(check_image, decode=decode), paths):
            reasons.append(reason)
            advance(1)
    table = _without_bad(table, reasons, skip_bad=skip_bad)
    differences = (*table.differences, *find_differences(table))
    return replace(table, differences=differences)


def read_tree(root: Path) -> ImageTable:
    """The files of a `domain/class/image` tree, not yet looked into."""
    tree = {folder.name: subfolders(folder) for folder in subfolders(root)}
    domains = sorted(name for name, folders in tree.items() if folders)
    class_names = merge_class_names(tree)
    index = {name: label for label, name in enumerate(class_names)}
    entries = [
        (file.relative_to(root).as_posix(), index[folder.name], code)
        for code, domain in enumerate(domains)
        for folder in tree[domain]
        for file in _files(folder)
    ]
    if not any(Path(path).suffix.lower() in IMAGE_SUFFIXES for path, _, _ in entries):
        raise ValueError(
            f"{root} holds no images as domain/class/image: {wrong_level(root)}"
        )
    if len(domains) == 1:
        raise ValueError(
            f"{root} has one domain only, {domains[0]!r}; wanted at least two"
        )
    loose = [file for name in ("", *tree) for file in loose_images(root / name)]
    paths, labels, codes = zip(*entries, strict=True)
    return ImageTable(
        root=root,
        paths=np.array(paths),
        labels=np.array(labels, dtype=np.intp),
        domain_codes=np.array(codes, dtype=np.int32),
        class_names=class_names,
        domain_names=tuple(canonical_domain(name) for name in domains),
        problems=tuple(
            BadImage(file.relative_to(root).as_posix(), "lies in no class folder")
            for file in loose
        ),
        differences=tuple(
            f"{name} is no domain: it has no class folders"
            for name in tree
            if name not in domains
        ),
    )


def merge_class_names(tree: dict[str, list[Path]]) -> tuple[str, ...]:
    """The sorted names of all domains; names that only look alike are refused."""
    owner: dict[str, tuple[str, str]] = {}
    for domain, folders in tree.items():
        for folder in folders:
            # An ä may be one letter, or an a and two dots; a Mac writes the latter.
            alike = unicodedata.normalize("NFKC", folder.name).casefold().strip()
            first, name = owner.setdefault(alike, (domain, folder.name))
            if name != folder.name:
                raise ValueError(
                    f"class names differ by case, blanks or accents' encoding only: "
                    f"{name!r} in {first}, {folder.name!r} in {domain}; wanted one "
                    "spelling"
                )
    return tuple(sorted(name for _, name in owner.values()))


def _files(folder: Path) -> list[Path]:
    """Everything visible in a class folder; folders are found out as no images."""
    hidden = ("Thumbs.db", "desktop.ini")
    visible = [p for p in folder.iterdir() if p.name[0] != "." and p.name not in hidden]
    return sorted(visible)


def _without_bad(
    table: ImageTable, reasons: list[str | None], *, skip_bad: bool
) -> ImageTable:
    if set(reasons) == {"missing"}:
        raise ValueError(
            f"{table.root} holds none of the {len(reasons)} images in its lists, the "
            f"first of which is {table.paths[0]}; wanted lists beside the domains"
        )
    good = np.array([reason is None for reason in reasons])
    problems = table.problems + tuple(
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
