"""What the page headers of a Parquet file claim, against what the file holds.

polars believes these headers and asks for the memory they imply; a damaged one asks
for so much that the process ends. The sizes and counts are compared here first, from
the footer and the page headers alone; a huge count that all of them agree on stands.
Both are written in Thrift's compact protocol.
"""

import os
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

# Fields have numbers in the file: https://github.com/apache/parquet-format
ROW_GROUPS, COLUMNS, COLUMN, ENCRYPTION = 4, 1, 3, 8
N_VALUES, UNPACKED, PACKED, FIRST_PAGE, DICTIONARY_PAGE = 5, 6, 7, 9, 11
PAGE_KIND, PAGE_UNPACKED, PAGE_PACKED, PAGE_VALUES = 1, 2, 3, 1
DATA, DICTIONARY, DATA_V2 = 0, 2, 3
# Where in the header of a page the part for its kind stands.
PLACES = {DATA: 5, DICTIONARY: 7, DATA_V2: 8}
LARGEST = 2**31 - 1


def check_pages(path: Path) -> int:
    """Refuse a file whose pages claim values or bytes that cannot be in them.

    Returns the bytes of its largest row group, unpacked: polars reads one at a time.
    """
    largest = 0
    with open(path, "rb") as stream:
        end = stream.seek(-8, os.SEEK_END)
        footer = end - int.from_bytes(stream.read(4), "little")
        stream.seek(max(0, footer))
        for group in _struct(BytesIO(stream.read()))[ROW_GROUPS]:
            # polars itself refuses an encrypted column, if one is wanted.
            plain = [c[COLUMN] for c in group[COLUMNS] if ENCRYPTION not in c]
            for chunk in plain:
                _check_chunk(stream, chunk, footer)
            largest = max(largest, sum(chunk[UNPACKED] for chunk in plain))
    return largest


def _check_chunk(stream: BinaryIO, chunk: dict[int, Any], footer: int) -> None:
    """The pages of one column in one row group, which follow each other."""
    at = chunk.get(DICTIONARY_PAGE, chunk[FIRST_PAGE])
    end, left = at + chunk[PACKED], chunk[N_VALUES]
    if not 0 <= at <= end <= footer:
        raise ValueError(
            f"a column claims the bytes {at} to {end}; wanted them before {footer}"
        )
    while at < end:
        stream.seek(at)
        page = _struct(stream)
        body = stream.tell()
        packed = _within("bytes", page.get(PAGE_PACKED), end - body, at)
        most = chunk[UNPACKED]
        unpacked = _within("bytes unpacked", page.get(PAGE_UNPACKED), most, at)
        kind = page.get(PAGE_KIND, -1)
        n_values = page.get(PLACES.get(kind, 0), {}).get(PAGE_VALUES)
        if kind == DICTIONARY:
            # Each of its values takes a byte at least; those of a data page may not.
            _within("values", n_values, unpacked, at)
        else:
            left -= _within("values", n_values, left, at)
        at = body + packed
    if left:
        raise ValueError(
            f"{left} values of a column are in none of its pages; wanted all of its "
            f"{chunk[N_VALUES]}"
        )


def _within(what: str, claimed: Any, most: int, at: int) -> int:
    most = min(most, LARGEST)
    if not (isinstance(claimed, int) and 0 <= claimed <= most):
        raise ValueError(
            f"the page at byte {at} claims {claimed} {what}; wanted 0 to {most}"
        )
    return claimed


def _struct(stream: BinaryIO) -> dict[int, Any]:
    """Numbers and structs by their field; texts are skipped."""
    fields: dict[int, Any] = {}
    field = 0
    while header := _byte(stream):
        step, kind = header >> 4, header & 15
        field = field + step if step else _signed(stream)
        # A truth value stands in the header itself.
        fields[field] = None if kind in (1, 2) else _value(stream, kind)
    return fields


def _value(stream: BinaryIO, kind: int) -> Any:
    if kind in (4, 5, 6):
        return _signed(stream)
    if kind == 8:
        return stream.seek(min(_unsigned(stream), LARGEST), os.SEEK_CUR)
    if kind == 12:
        return _struct(stream)
    if kind in (9, 10):
        header = _byte(stream)
        length = header >> 4 if header < 0xF0 else _unsigned(stream)
        return [_value(stream, header & 15) for _ in range(length)]
    if kind in (1, 2, 3):
        return _byte(stream)
    if kind == 7:
        return [_byte(stream) for _ in range(8)]
    raise ValueError(f"a header has a field of type {kind}; wanted 1 to 10, or 12")


def _signed(stream: BinaryIO) -> int:
    number = _unsigned(stream)
    return (number >> 1) ^ -(number & 1)


def _unsigned(stream: BinaryIO) -> int:
    number = 0
    for shift in range(0, 64, 7):
        byte = _byte(stream)
        number |= (byte & 127) << shift
        if byte < 128:
            return number
    raise ValueError("a header has a number of more than 64 bits")


def _byte(stream: BinaryIO) -> int:
    read = stream.read(1)
    if not read:
        raise EOFError("the file ends inside a header")
    return read[0]
