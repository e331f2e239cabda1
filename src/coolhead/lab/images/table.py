"""A table of images: which file, which class, which domain."""

import errno
import hashlib
import os
import re
import stat
import unicodedata
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
    root : folder the paths start from
    paths : (n,) str, relative, with forward slashes
    labels : (n,) indices into `class_names`
    domain_codes : (n,) indices into `domain_names`
    roles : (n,) "train" or "test" where official lists say so, else None
    problems : files that were left out
    differences : how the folder differs from the published data set, in words

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
    try:
        str(path).encode()
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            return "a folder; wanted domain/class/image"
        if path.suffix.lower() not in IMAGE_SUFFIXES:
            return "not an image type"
        if not stat.S_ISREG(mode):
            return "not a regular file"
        if path.stat().st_size == 0:
            return "empty file"
        with Image.open(path) as image:
            if decode:
                image.draft(None, (1, 1))
                image.load()
    except UnicodeEncodeError:
        return "a name that is not UTF-8"
    except FileNotFoundError:
        return "a link to nothing" if path.is_symlink() else "missing"
    # Pillow's readers raise many kinds of errors on damaged files.
    except Exception as error:
        if isinstance(error, OSError) and error.errno == errno.ELOOP:
            return "a link that leads in a circle"
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


DEEPEST = 6


def subfolders(parent: Path) -> list[Path]:
    """Visible folders, links followed, sorted; one that is out of reach is refused."""
    found = sorted(p for p in parent.iterdir() if p.name[0] not in "._")
    for path in found:
        if not path.exists():
            raise ValueError(
                f"{path} is a link to nothing; wanted a folder, or no link"
            )
    folders = [path for path in found if path.is_dir()]
    for path in folders:
        if not path.name.isprintable():
            raise ValueError(
                f"folder {str(path)!r} has a name that can not be printed; wanted UTF-8"
            )
    return folders


def loose_images(folder: Path) -> list[Path]:
    """Image files directly in a folder, sorted."""
    return sorted(
        path
        for path in folder.iterdir()
        if path.name[0] != "." and path.suffix.lower() in IMAGE_SUFFIXES
    )


def wrong_level(root: Path) -> str:
    """What a folder looks like where its images are not three levels down, in words."""
    example = _first_image(root, DEEPEST)
    if example is None:
        return "found no image in it"
    parts = example.relative_to(root).parts
    whole = root.absolute()
    if len(parts) == 1:
        looks, meant = "a class", whole.parent.parent
    elif len(parts) == 2:
        looks, meant = "a domain", whole.parent
    else:
        inside = root.joinpath(*parts[:-3])
        looks, meant = f"{len(parts) - 3} level(s) above the domains", inside
    return f"it looks like {looks} (found {'/'.join(parts)}): did you mean {meant}?"


def _first_image(folder: Path, levels: int) -> Path | None:
    for path in loose_images(folder):
        if path.is_file():
            return path
    inside = subfolders(folder) if levels > 1 else []
    found = (_first_image(path, levels - 1) for path in inside)
    return next((path for path in found if path is not None), None)


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
    ...     images = ch.lab.images.list_images(folder)
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
