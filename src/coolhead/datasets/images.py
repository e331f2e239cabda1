"""A table of images: which file, which class, which domain."""

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
    """A file that can not be used, and why."""

    path: str
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


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


def check_image(path: Path, *, decode: bool = False) -> str | None:
    """Why a file is not a usable image, or None.

    The header tells most; only decoding all pixels finds a body that is cut off.
    """
    if path.is_dir():
        return "a folder; wanted domain/class/image"
    if path.suffix.lower() not in IMAGE_SUFFIXES:
        return "not an image type"
    try:
        if path.stat().st_size == 0:
            return "empty file"
        with Image.open(path) as image:
            if decode:
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
