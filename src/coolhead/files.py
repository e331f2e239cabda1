"""Files appear whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex


@contextmanager
def atomic_path(path: str | os.PathLike) -> Iterator[Path]:
    """Yield a temporary path that replaces `path` once the block succeeds.

    The bytes are on disk before the name changes, so a kill at any moment leaves
    either the old file or the new one, never a part of it.
    """
    path = check_output(path)
    temporary = _new_file_beside(path)
    permissions = temporary.stat().st_mode
    try:
        yield temporary
        _flush_to_disk(temporary)
        # Some writers put a private file of their own in its place.
        os.chmod(temporary, permissions)
        os.replace(temporary, path)
    except BaseException:
        with suppress(FileNotFoundError):
            temporary.unlink()
        raise


def check_output(path: str | os.PathLike) -> Path:
    """Refuse a place where no file can be written, before any work is done."""
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"cannot write {path}: it is a folder")
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"cannot write {path}: the folder {path.parent} does not exist"
        )
    return path


def _new_file_beside(path: Path) -> Path:
    """An empty hidden file of a name nobody has, with ordinary permissions."""
    temporary = path.with_name(f".{path.name}.{token_hex(6)}{path.suffix}")
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    except PermissionError as error:
        raise PermissionError(
            f"cannot write {path}: no permission to write in {path.parent}"
        ) from error
    return temporary


def _flush_to_disk(path: Path) -> None:
    with open(path, "rb") as handle:
        os.fsync(handle.fileno())
