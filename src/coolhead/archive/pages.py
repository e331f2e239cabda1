"""Pages of mapped files, which count as memory once they were looked at."""

import mmap
from typing import Any


def give_back_pages(*arrays: Any) -> None:
    """Let the system take the pages of arrays that are mapped to be read alone.

    They are read again if needed.
    """
    if not hasattr(mmap, "MADV_DONTNEED"):
        return
    for array in arrays:
        while array is not None and not isinstance(array, mmap.mmap):
            array = getattr(array, "base", None)
        # What was written to a private copy of pages is nowhere else.
        if array is not None and memoryview(array).readonly:
            array.madvise(mmap.MADV_DONTNEED)
