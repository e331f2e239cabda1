"""Labels of files that are names; an empty name is a row without a label."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from coolhead.archive.prediction_file import Columns, PredictionFile
from coolhead.numerics.class_names import number_names

UNLABELLED = -1


def with_numbered_labels(
    file: PredictionFile, usual: Sequence[str] | None
) -> PredictionFile:
    """The same file with class numbers in place of names.

    usual : names of the classes where the file says none; else its distinct labels,
        sorted, if there are as many as classes.
    """
    if file.label_names is None:
        return file
    names = file.class_names or (None if usual is None else tuple(usual))
    if names is None:
        widths = file.widths
        n_classes = widths.get("logits", widths.get("probabilities"))
        distinct = np.array(sorted(file.label_names() - {""}), np.str_)
        names = tuple(map(str, range(n_classes or 0)))
        if distinct.size:
            names = number_names(distinct, n_classes, None)[1]

    def blocks(n_rows: int) -> Iterator[Columns]:
        return (_numbered(columns, names) for columns in file.blocks(n_rows))

    return replace(
        file,
        blocks=blocks,
        load=lambda: _numbered(file.load(), names),
        class_names=names,
        label_names=None,
        named_labels=True,
    )


def _numbered(columns: Columns, class_names: tuple[str, ...]) -> Columns:
    labels = np.asarray(columns["labels"])
    known = labels != ""
    codes = np.full(len(labels), UNLABELLED)
    codes[known] = number_names(labels[known], len(class_names), class_names)[0]
    return columns | {"labels": codes}
