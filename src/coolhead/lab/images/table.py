"""A table of images: which file, which class, which domain."""

import hashlib
import os
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from joblib import cpu_count
from PIL import Image

from coolhead.plugins import suggest
from coolhead.progress import progress_bar

IMAGE_SUFFIXES = {".jpg", ".jpeg", ".png", ".bmp", ".webp", ".gif", ".tif", ".tiff"}


@dataclass(frozen=True)
class BadImage:
    """A file that can not be used, and why.

    Examples
    --------
    >>> from coolhead.lab.images import BadImage
    >>> BadImage("sketch/cat/7.png", "the file is empty").reason
    'the file is empty'
    """

    path: str
    reason: str

    def __str__(self) -> str:
        # Names that are not UTF-8 could not be printed.
        name = self.path.encode(errors="backslashreplace").decode()
        return f"{name}: {self.reason}"


@dataclass(frozen=True, eq=False)
class ImageTable:
    """Images of several domains with one list of classes for all.

    Attributes
    ----------
    root : Path
        Folder that the paths start from.
    paths : ndarray of str of shape (n_images,)
        Relative, with forward slashes.
    labels : ndarray of int of shape (n_images,)
        Indices into `class_names`.
    domain_codes : ndarray of int of shape (n_images,)
        Indices into `domain_names`.
    roles : ndarray of str of shape (n_images,) or None
        "train" or "test", of data with official lists.
    problems : tuple of str
        Files that were left out.
    differences : tuple of str
        Classes that a domain lacks, as text.

    Examples
    --------
    >>> import coolhead as ch
    >>> import tempfile
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("photo/cat", "sketch/cat"):
    ...         Path(folder, name).mkdir(parents=True)
    ...         Image.new("RGB", (64, 64)).save(Path(folder, name, "1.png"))
    ...     images = ch.lab.images.list_images(folder)
    ...
    >>> images.domain_names, images.class_names, images.paths.tolist()
    (('photo', 'sketch'), ('cat',), ['photo/cat/1.png', 'sketch/cat/1.png'])
    """

    root: Path
    paths: np.ndarray
    labels: np.ndarray
    domain_codes: np.ndarray
    class_names: tuple[str, ...]
    domain_names: tuple[str, ...]
    roles: np.ndarray | None = None
    problems: tuple[BadImage, ...] = ()
    differences: tuple[str, ...] = field(default=())

    def __len__(self) -> int:
        return len(self.paths)

    @property
    def domains(self) -> np.ndarray:
        """(n,) array of domain names."""
        return np.array(self.domain_names)[self.domain_codes]

    @property
    def ids(self) -> np.ndarray:
        """(n,) the paths: they say which image a row is."""
        return self.paths

    @property
    def groups(self) -> None:
        """Images of a folder have no groups."""
        return None

    def domain_sizes(self) -> dict[str, int]:
        """Images of every domain."""
        counts = np.bincount(self.domain_codes, minlength=len(self.domain_names))
        return dict(zip(self.domain_names, counts.tolist(), strict=True))

    def rows(self, index: Any) -> Self:
        """The images of a slice, a boolean mask or an array of row numbers."""
        return replace(
            self,
            paths=self.paths[index],
            labels=self.labels[index],
            domain_codes=self.domain_codes[index],
            roles=None if self.roles is None else self.roles[index],
        )

    def select(self, *domains: str) -> Self:
        """The images of the named domains; all names keep their index."""
        for name in domains:
            if name not in self.domain_names:
                hint = suggest(name, self.domain_names)
                raise ValueError(f"domain {name!r} is not in {self.root}{hint}")
        return self.rows(np.isin(self.domains, domains))

    def only(self, role: str) -> Self:
        """The images of the official "train" or "test" lists."""
        if self.roles is None:
            raise ValueError(f"{self.root} has no train and test lists")
        if role not in ("train", "test"):
            raise ValueError(f"role is {role!r}; wanted 'train' or 'test'")
        return self.rows(self.roles == role)

    def checksum(self) -> str:
        """SHA-256 of all paths and of what the files hold, in the order of the rows."""
        digest = hashlib.sha256()
        for path in self.paths:
            content = (self.root / path).read_bytes()
            digest.update(f"{path}\0{len(content)}\0".encode())
            digest.update(content)
        return digest.hexdigest()


def check_image(path: Path, *, decode: bool = False) -> str | None:
    """Why a file is not a usable image, or None.

    The header tells most; only decoding finds a body that is cut off. JPEGs are
    decoded at an eighth, which reads all their bytes at a third of the cost.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from coolhead.lab.images import check_image
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "cat.png")
    ...     _ = file.write_text("not a picture")
    ...     print(check_image(file))
    ...
    unreadable (UnidentifiedImageError)
    """
    if path.suffix.lower() not in IMAGE_SUFFIXES or path.is_dir():
        return "not an image type"
    try:
        n_bytes = path.stat().st_size
        if not path.is_file():
            return "not a regular file"
        if not n_bytes:
            return "empty file"
        with Image.open(path) as image:
            if decode:
                image.draft(None, (1, 1))
                image.load()
    except FileNotFoundError:
        return "missing"
    # Pillow's readers raise many kinds of errors on damaged files.
    except Exception as error:
        return f"unreadable ({type(error).__name__})"
    return None


def refuse_problems(root: Path, problems: Sequence[BadImage]) -> None:
    """Say what is wrong with the folder, and how to go on without those files."""
    listed = "\n  ".join(str(problem) for problem in problems[:10])
    more = f"\n  ... and {len(problems) - 10} more" if len(problems) > 10 else ""
    raise ValueError(
        f"{root} holds {len(problems)} unusable files; skip_bad=True (--skip-bad) "
        f"leaves them out:\n  {listed}{more}"
    )


def subfolders(parent: Path) -> list[Path]:
    """Visible folders, links followed, sorted."""
    return sorted(p for p in parent.iterdir() if p.name[0] not in "._" and p.is_dir())


def loose_images(folder: Path) -> list[Path]:
    """Image files directly in a folder, sorted."""
    return sorted(
        path
        for path in folder.iterdir()
        if path.name[0] != "." and path.suffix.lower() in IMAGE_SUFFIXES
    )


def missing_classes(table: ImageTable) -> Iterator[str]:
    """Classes without images in some domain, or in one of its lists."""
    roles = np.full(len(table), "") if table.roles is None else table.roles
    for domain in table.domain_names:
        for role in np.unique(roles):
            rows = (table.domains == domain) & (roles == role)
            absent = np.setdiff1d(np.arange(len(table.class_names)), table.labels[rows])
            if len(absent):
                names = ", ".join(f"{table.class_names[c]} ({c})" for c in absent[:5])
                more = f" and {len(absent) - 5} more" if len(absent) > 5 else ""
                yield f"{f'{domain} {role}'.strip()} has no images of {names}{more}"


ROLES = ("train", "test")


def read_lists(root: Path) -> ImageTable | None:
    """The images of DomainNet's lists, or None where there are no lists.

    Labels come from the lists, never from folders.
    """
    domains = sorted({p.name.rpartition("_")[0] for p in root.glob("*_train.txt")})
    if not domains:
        return None
    entries = [
        (*entry, code, role)
        for code, domain in enumerate(domains)
        for role in ROLES
        for entry in _read_list(root / f"{domain}_{role}.txt")
    ]
    if not entries:
        raise ValueError(f"the lists in {root} are empty")
    paths, labels, codes, roles = zip(*entries, strict=True)
    twice = [path for path, count in Counter(paths).items() if count > 1]
    if twice:
        raise ValueError(
            f"{twice[0]} is listed twice; a test image that was trained on would make "
            "every number too good"
        )
    return ImageTable(
        root=root,
        paths=np.array(paths),
        labels=np.array(labels, dtype=np.intp),
        domain_codes=np.array(codes, dtype=np.int32),
        class_names=_class_names(paths, labels),
        domain_names=tuple(domains),
        roles=np.array(roles),
    )


def _read_list(path: Path) -> Iterator[tuple[str, int]]:
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        image, _, label = line.strip().rpartition(" ")
        if image and label.isdecimal():
            yield image, int(label)
        elif line.strip():
            raise ValueError(
                f"{path}, line {number}: found {line!r}; wanted 'domain/class/image "
                "label'"
            )


def _class_names(paths: Sequence[str], labels: Sequence[int]) -> tuple[str, ...]:
    """The class folder of every label: one folder per label, and no gap."""
    folders = [Path(path).parent.name for path in paths]
    pairs = sorted(set(zip(labels, folders, strict=True)))
    names = tuple(name for _, name in pairs)
    if [label for label, _ in pairs] != list(range(len(pairs))) or len(
        {name.casefold() for name in names}
    ) < len(names):
        raise ValueError(
            f"the lists have the labels and class folders {pairs[:10]} ...; wanted one "
            "class folder for each label, and the labels 0, 1, 2, ..."
        )
    return names


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
    folder : path-like
        A `domain/class/image` tree (Office-Home, PACS, VLCS, TerraIncognita or your
        own), or DomainNet with its `{domain}_train.txt` and `{domain}_test.txt`, which
        then decide on the labels.
    skip_bad : bool, default=False
        Leave unusable files out and list them in `problems`, instead of an error.
    decode : bool, default=False
        Read whole files to find images with a damaged body: some 1.5 ms each.
    workers : int, default=None
        Threads that look into files, by default one per core.
    progress : bool, default=False
        Show a progress bar.

    Returns
    -------
    ImageTable
        Its `differences` name the classes that a domain lacks.

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
    ...     images = ch.lab.images.list_images(folder)
    ...
    >>> len(images.paths), images.domain_names, images.labels.tolist()
    (4, ('photo', 'sketch'), [0, 1, 0, 1])
    """
    root = Path(folder)
    if not root.is_dir():
        raise ValueError(f"{root} is not a folder; wanted a folder of domains")
    table = read_lists(root) or read_tree(root)
    if len(table.domain_names) == 1:
        raise ValueError(
            f"{root} has one domain only, {table.domain_names[0]!r}; wanted at least "
            "two"
        )
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
    differences = (*table.differences, *missing_classes(table))
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
        raise ValueError(f"{root} holds no images as domain/class/image")
    loose = [file for name in ("", *tree) for file in loose_images(root / name)]
    paths, labels, codes = zip(*entries, strict=True)
    return ImageTable(
        root=root,
        paths=np.array(paths),
        labels=np.array(labels, dtype=np.intp),
        domain_codes=np.array(codes, dtype=np.int32),
        class_names=class_names,
        # Office-Home's fourth folder is found under two spellings.
        domain_names=tuple(
            "Real World" if name == "RealWorld" else name for name in domains
        ),
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
