"""Many strings as two plain arrays, so that a file of numbers can hold them."""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np


@dataclass(frozen=True, eq=False)
class PackedStrings:
    """UTF-8 bytes of all strings, one after the other, and where each one starts.

    Attributes
    ----------
    data : (n_bytes,) uint8
    offsets : (n + 1,) int64, rising from 0 to n_bytes
    """

    data: np.ndarray
    offsets: np.ndarray

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: slice | np.ndarray) -> "PackedStrings | np.ndarray":
        """A slice stays packed; any other choice of rows is decoded."""
        if not isinstance(index, slice) or index.step not in (None, 1):
            return self.array[index]
        start, stop, _ = index.indices(len(self))
        offsets = self.offsets[start : max(start, stop) + 1]
        return PackedStrings(self.data[offsets[0] : offsets[-1]], offsets - offsets[0])

    @cached_property
    def array(self) -> np.ndarray:
        """(n,) array of str, decoded at the first use."""
        data, ends = self.data.tobytes(), self.offsets.tolist()
        return np.array([data[a:b].decode() for a, b in pairwise(ends)], dtype=np.str_)


def pack_strings(strings: np.ndarray) -> PackedStrings:
    """The inverse of `PackedStrings.array`."""
    encoded = [str(text).encode() for text in strings]
    offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum([len(text) for text in encoded], out=offsets[1:])
    return PackedStrings(np.frombuffer(b"".join(encoded), dtype=np.uint8), offsets)


def check_packed(packed: PackedStrings, name: str) -> PackedStrings:
    """Refuse offsets that do not cut `data` into pieces."""
    offsets = packed.offsets
    whole = offsets.ndim == 1 and len(offsets) and offsets[0] == 0
    if not whole or offsets[-1] != len(packed.data) or (np.diff(offsets) < 0).any():
        raise ValueError(f"{name}: the string offsets are damaged")
    return packed
