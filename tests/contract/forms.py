"""The forms in which people hold labels and scores, generated.

A problem has twelve classes: from ten on, "10" sorts before "2" as text.
"""

from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import torch

N_CLASSES = 12
DIGITS = tuple(map(str, range(N_CLASSES)))
# Sorted as text, as scikit-learn orders the columns of such labels.
WORDS = ("ant", "bee", "cow", "dog", "elk", "fox", "gnu", "hen", "ibex", "jay", "kite")
WORDS += ("lynx",)
ORDER = np.random.default_rng(5).permutation(N_CLASSES)

NUMBERS = {
    "int": lambda y: y,
    "list of int": lambda y: y.tolist(),
    "int8": lambda y: y.astype(np.int8),
    "object int": lambda y: y.astype(object),
    "column of int": lambda y: y[:, None],
    "pandas int": pd.Series,
    "pandas Int64": lambda y: pd.Series(y, dtype="Int64"),
    "pandas category of int": lambda y: pd.Series(y, dtype="category"),
    "polars int": pl.Series,
    "torch": torch.as_tensor,
}
TEXT = {
    "str": np.array,
    "list of str": list,
    "object": lambda names: np.array(names, object),
    "bytes": lambda names: np.array(names).astype("S"),
    "pandas str": pd.Series,
    "pandas string": lambda names: pd.Series(names, dtype="string"),
    "pandas category": lambda names: pd.Series(names, dtype="category"),
    "polars str": lambda names: pl.Series(list(names)),
    "polars Categorical": lambda names: pl.Series(list(names), dtype=pl.Categorical),
}


def ordered(names, classes):
    return pd.Categorical(names, categories=list(classes), ordered=True)


def enum(names, classes):
    return pl.Series(list(names), dtype=pl.Enum(list(classes)))


CHOSEN = {"ordered category": ordered, "polars Enum": enum}


def label_forms(codes):
    """(name, labels, kind): kind is "number", "word" or "digit", or its own order."""
    for name, form in NUMBERS.items():
        yield name, form(codes), "number"
    for kind, classes in (("word", WORDS), ("digit", DIGITS)):
        names = [classes[code] for code in codes]
        for name, form in TEXT.items():
            yield f"{name} {kind}", form(names), kind
        for name, form in CHOSEN.items():
            yield f"{name} {kind}", form(names, classes), f"chosen {kind}"


def score_forms(scores, prefix):
    """(name, scores, kind, order): kind "none", "word", "digit"; order of columns."""
    natural = np.arange(N_CLASSES)
    yield "array", scores, "none", natural
    yield "torch", torch.as_tensor(scores), "none", natural
    yield "pandas unnamed", pd.DataFrame(scores), "none", natural
    yield "polars unnamed", pl.DataFrame(scores), "none", natural
    frames = {"pandas": pd.DataFrame, "polars": pl.DataFrame}
    for (library, frame), before, (kind, classes), order in product(
        frames.items(),
        (prefix, ""),
        (("word", WORDS), ("digit", DIGITS)),
        (natural, ORDER),
    ):
        columns = {f"{before}{classes[i]}": scores[:, i] for i in order}
        turned = "" if order is natural else " permuted"
        yield f"{library} {before}{kind}{turned}", frame(columns), kind, order


def matches(label_kind, score_kind, order):
    """True: the same number; False: refused; None: the combination has no meaning."""
    named = score_kind != "none"
    moved = not np.array_equal(order, np.arange(N_CLASSES))
    if label_kind == "number":
        # Integers are column numbers, unless the columns are called by number.
        return None if score_kind == "word" and moved else True
    chosen, kind = label_kind.startswith("chosen"), label_kind.split()[-1]
    if named:
        if kind == score_kind:
            return True
        # Numbers may only count the columns; words beside them are sorted.
        return kind == "word"
    return kind == "word" or chosen
