"""Checks of paths, and files that appear whole or not at all."""

import json
import os
import re
import socket
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from secrets import token_hex
from typing import Any
from zlib import crc32

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

SPECIAL = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def check_input(path: str | os.PathLike, wanted: str = "a file") -> Path:
    """Refuse a missing file, and one that cannot be read twice, before any work."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; wanted {wanted}")
    kind = SPECIAL.get(stat.S_IFMT(path.stat().st_mode))
    if kind is not None:
        raise ValueError(f"{path} is {kind}; wanted {wanted}")
    return path


def check_inputs(*paths: str | os.PathLike | None) -> list[Path]:
    """Check each input; None, an option that was not given, is left out."""
    return [check_input(path) for path in paths if path is not None]


def check_output(
    path: str | os.PathLike,
    *,
    inputs: Iterable[str | os.PathLike] = (),
    endings: Sequence[str] = (),
) -> Path:
    """Refuse a path where no file can or should be written, before any work.

    Parameters
    ----------
    path : str or PathLike
        The file to write.
    inputs : iterable of str or PathLike, default=()
        Files that are read; folders stand for the files in them.
    endings : sequence of str, default=()
        Endings that the name may have, as in (".skops",); any by default.

    Returns
    -------
    Path
        The path with all symbolic links followed.
    """
    given, path = Path(path), Path(os.path.realpath(path))
    if endings and given.suffix not in endings:
        raise ValueError(
            f"{given} ends in {given.suffix or 'nothing'}; wanted "
            f"{'one of ' * (len(endings) > 1)}{', '.join(endings)}"
        )
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"cannot write {given}: the folder {path.parent} does not exist"
        )
    if path.is_dir():
        raise IsADirectoryError(f"cannot write {given}: it is a folder; wanted a file")
    if not os.path.lexists(path):
        return path
    if not path.is_file():
        kind = SPECIAL.get(stat.S_IFMT(path.lstat().st_mode), "no ordinary file")
        raise ValueError(f"cannot write {given}: it is {kind}; wanted a file")
    for name in inputs:
        if _is_part_of(path, Path(name)):
            raise ValueError(
                f"cannot write {given}: it is the input {name}; wanted another file"
            )
    if not os.access(path, os.W_OK):
        raise PermissionError(f"cannot write {given}: no permission to change it")
    return path


def check_output_folder(path: str | os.PathLike) -> Path:
    """Refuse a path where no folder can be, before any work."""
    path = Path(path)
    above = (path, *path.absolute().parents)
    there = next(folder for folder in above if os.path.lexists(folder))
    if not there.is_dir():
        kind = "a file" if there.exists() else "a link to nothing"
        raise NotADirectoryError(f"{path}: {there} is {kind}; wanted a folder")
    return path


def _is_part_of(path: Path, given: Path) -> bool:
    if given.is_dir():
        return path.is_relative_to(given.resolve())
    return given.exists() and path.samefile(given)


def check_metadata(metadata: Any) -> dict[str, Any]:
    """Return a copy as a JSON file would give it back."""
    if metadata is None:
        return {}
    try:
        copy = json.loads(json.dumps(metadata, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise ValueError(f"metadata is not plain JSON: {error}") from error
    if not isinstance(copy, dict):
        raise ValueError(f"metadata is a {type(metadata).__name__}; wanted a dict")
    return copy


@contextmanager
def atomic_path(path: str | os.PathLike) -> Iterator[Path]:
    """Yield a temporary path that replaces `path` once the block succeeds.

    The bytes are on disk before the name changes, so a kill at any moment leaves
    either the old file or the new one, never a part of it. A symbolic link stays one,
    and a file keeps its permissions.
    """
    given, path = path, check_output(path)
    _remove_leftovers(path)
    permissions = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
    writer = f"{_machine()}-{os.getpid()}-{token_hex(4)}"
    temporary = path.with_name(f".{path.name}.{writer}{path.suffix}")
    # Its writers must be able to open it, whatever the file itself allows.
    mode = (0o666 if permissions is None else permissions) | stat.S_IRUSR | stat.S_IWUSR
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
    except PermissionError as error:
        raise PermissionError(
            f"cannot write {path}: no permission to write in {path.parent}"
        ) from error
    try:
        if permissions is None:
            permissions = stat.S_IMODE(temporary.stat().st_mode)
        try:
            yield temporary
        except OSError as error:
            reason = error.strerror or " ".join(str(error).split())[:200]
            raise OSError(f"cannot write {os.fspath(given)}: {reason}") from error
        with open(temporary, "rb") as handle:
            os.fsync(handle.fileno())
        # Some writers replace it by a private file of their own.
        os.chmod(temporary, permissions)
        os.replace(temporary, path)
    except BaseException:
        with suppress(FileNotFoundError):
            temporary.unlink()
        raise


def write_text(path: str | os.PathLike, text: str) -> None:
    """Write a text in UTF-8, through `atomic_path`."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _remove_leftovers(path: Path) -> None:
    """Delete what killed processes of this machine began to write to `path`."""
    name = rf"\.{re.escape(path.name)}\.{_machine()}-(\d+)-[0-9a-f]{{8}}"
    pattern = re.compile(name + re.escape(path.suffix))
    for beside in os.listdir(path.parent):
        found = pattern.fullmatch(beside)
        if found and not _is_alive(int(found[1])):
            with suppress(OSError):
                path.with_name(beside).unlink()


@cache
def _machine() -> str:
    """Return a name of this machine, or of the container, that counts processes."""
    try:
        space = os.readlink("/proc/self/ns/pid")
    except OSError:
        space = ""
    return f"{crc32(f'{socket.gethostname()} {space}'.encode()):08x}"


def _is_alive(process: int) -> bool:
    if os.name != "posix":
        # Elsewhere the question would end the process.
        return True
    try:
        os.kill(process, 0)
    except OSError as error:
        return not isinstance(error, ProcessLookupError)
    return True


@contextmanager
def only_one(path: str | os.PathLike) -> Iterator[None]:
    """Hold a lock file; where another living process holds it, say which.

    The system lets go of the lock when its process ends, however it ends.
    """
    with open(path, "a+") as handle:
        if fcntl is not None:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                handle.seek(0)
                raise BlockingIOError(
                    f"{Path(path).parent} is in use by process {handle.read()}; wanted "
                    "one at a time: wait for it, or choose another folder"
                ) from error
        handle.truncate(0)
        handle.write(str(os.getpid()))
        handle.flush()
        yield
