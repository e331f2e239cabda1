"""A table of images: which file, which class, which domain."""

import errno
import hashlib
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from PIL import Image

from coolhead.suggest import suggest

IMAGE_SUFFIXES = {".jpg", ".jpeg", ".png", ".bmp", ".webp", ".gif", ".tif", ".tiff"}


@dataclass(frozen=True)
class BadImage:
    """A file that can not be used, and why.

    Examples
    --------
    >>> from coolhead.datasets import BadImage
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
    ...     images = ch.datasets.list_images(folder)
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
    >>> from coolhead.datasets import check_image
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
