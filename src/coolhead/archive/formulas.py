"""What a spreadsheet would compute is made plain before it reaches a CSV file."""

import re
from typing import TypeVar

import polars as pl

Frame = TypeVar("Frame", pl.DataFrame, pl.LazyFrame)
COMPUTED = r"^[=+\-@\t\r]"
# -1 is a class of many data sets, and what it computes to.
NUMBER = r"^[+-]?\d+(\.\d*)?([eE][+-]?\d+)?$"


def without_formulas(frame: Frame) -> Frame:
    """The same table with an apostrophe before texts and headings such as =1+1, @x."""
    texts = pl.selectors.string()
    computed = texts.str.contains(COMPUTED) & ~texts.str.contains(NUMBER)
    shielded = pl.when(computed).then(pl.lit("'") + texts).otherwise(texts)
    frame = frame.with_columns(shielded.name.keep())
    return frame.rename(lambda name: f"'{name}" if re.match(COMPUTED, name) else name)
