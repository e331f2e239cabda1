"""Finished rows on disk, so that a killed run goes on where it stopped."""

import json
import re
import warnings
from contextlib import ExitStack
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np

from coolhead.files import atomic_path, check_output_folder, only_one, write_text

MARK, LOCK = "coolhead-extraction.json", "coolhead-extraction.lock"
# The mark is the first thing written; what a kill leaves of that is no shard.
BEGUN = re.compile(rf"\.{MARK}\..*|{LOCK}")
OWN = re.compile(rf"\.?[0-9]{{6}}\..*safetensors|\.?{MARK}.*|{LOCK}")


class ShardFolder:
    """A folder of numbered shards that belong to one plan.

    The plan says everything that decides the content of a shard. A folder begun
    under another plan is refused: mixing the two would give a wrong archive. So is a
    folder without our mark, which is somebody else's, and one in use.
    """

    def __init__(self, folder: str | PathLike, plan: dict[str, Any]):
        self.folder = Path(folder)
        if not self.folder.parent.is_dir():
            raise FileNotFoundError(
                f"folder {self.folder.parent} does not exist: nowhere to write to"
            )
        self.plan = json.loads(json.dumps(plan))
        self._held = ExitStack()

    def __enter__(self) -> Self:
        check_output_folder(self.folder).mkdir(exist_ok=True)
        self._refuse_foreign()
        self._held.enter_context(only_one(self.folder / LOCK))
        try:
            self._begin()
        except BaseException:
            self._held.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def _refuse_foreign(self) -> None:
        names = [path.name for path in self.folder.iterdir()]
        if MARK not in names and not all(map(BEGUN.fullmatch, names)):
            raise FileExistsError(
                f"{self.folder} is a folder that coolhead did not make; wanted none of "
                "that name, for the finished rows: move it, or write to another place"
            )

    def _begin(self) -> None:
        path = self.folder / MARK
        if path.exists():
            self._compare(self._read_mark(path))
            return
        write_text(path, json.dumps(self.plan))

    def _read_mark(self, path: Path) -> dict[str, Any]:
        try:
            begun = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            begun = None
        if not isinstance(begun, dict):
            msg = f"{path} is damaged: delete {self.folder}, and its rows are done anew"
            raise ValueError(msg)
        return begun

    def _compare(self, begun: dict[str, Any]) -> None:
        for key in dict.fromkeys([*self.plan, *begun]):
            if begun.get(key) != self.plan.get(key):
                raise ValueError(
                    f"{self.folder} was begun with {key}={begun.get(key)!r}, now it is "
                    f"{self.plan.get(key)!r}: run as before, or delete that folder"
                )

    def path(self, index: int) -> Path:
        """Return the file of one shard."""
        return self.folder / f"{index:06d}.safetensors"

    def write(self, index: int, arrays: dict[str, np.ndarray], notes: list) -> None:
        """Keep one finished shard; it appears whole or not at all."""
        from safetensors import SafetensorError
        from safetensors.numpy import save_file

        try:
            with atomic_path(self.path(index)) as temporary:
                save_file(arrays, temporary, metadata={"notes": json.dumps(notes)})
        except (OSError, SafetensorError) as error:
            raise OSError(
                f"cannot write to {self.folder} ({error}); finished rows are kept "
                "there, and the same command goes on from them"
            ) from error

    def read(self, index: int) -> tuple[dict[str, np.ndarray], list]:
        """Return the arrays and notes of one finished shard."""
        from safetensors import SafetensorError, safe_open

        path = self.path(index)
        try:
            with safe_open(path, framework="numpy") as file:
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
                return arrays, json.loads(file.metadata()["notes"])
        except (SafetensorError, TypeError, KeyError, ValueError) as error:
            msg = f"{path} is damaged ({error}): delete it, and its rows are done anew"
            raise ValueError(msg) from error

    def remove(self) -> None:
        """Delete the folder, once its rows are in the archive."""
        names = {path.name: path for path in self.folder.iterdir()}
        foreign = [name for name in names if not OWN.fullmatch(name)]
        for name in names.keys() - {*foreign, MARK, LOCK}:
            names[name].unlink()
        if foreign:
            warnings.warn(
                f"{self.folder} is kept: it holds {foreign[0]}, which coolhead did not "
                "write",
                stacklevel=3,
            )
            return
        (self.folder / MARK).unlink()
        (self.folder / LOCK).unlink()
        self.folder.rmdir()
