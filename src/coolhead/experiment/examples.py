"""Examples to look at: the surest mistakes, and what each method made of them."""

from collections.abc import Mapping

import numpy as np

from coolhead.experiment.pictures import Pictures
from coolhead.experiment.predictions import Predictions
from coolhead.experiment.results import CellResult
from coolhead.experiment.rows import SplitRows

N_EXAMPLES = 6


def add_examples(
    data: SplitRows,
    predictions: Mapping[str, Predictions],
    pictures: Pictures,
    result: CellResult,
) -> None:
    """Add the wrong rows with the highest uncalibrated confidence, surest first.

    One row of the table per example and method; the picture stands in the row of the
    uncalibrated classifier only.
    """
    before = predictions.get("uncalibrated")
    if before is None:
        return
    archive = data.archive
    wrong = np.flatnonzero(~before.correct)
    surest = wrong[np.argsort(-before.confidence[wrong], kind="stable")][:N_EXAMPLES]
    rows = data.evaluated_index[surest]
    ids = archive.rows(rows).ids
    for rank, (place, row) in enumerate(zip(surest, rows, strict=True)):
        name = str(row) if ids is None else str(ids[rank])
        picture = pictures(int(row), name)
        if picture is None:
            continue
        labels = data.evaluated.labels[place], data.evaluated.logits[place].argmax()
        label, predicted = (
            _class_name(archive.class_names, int(code)) for code in labels
        )
        for method, found in predictions.items():
            result.add(
                "examples",
                rank=rank,
                id=name,
                label=label,
                predicted=predicted,
                method=method,
                confidence=float(found.confidence[place]),
                thumbnail=picture if method == "uncalibrated" else "",
            )


def _class_name(names: tuple[str, ...] | None, code: int) -> str:
    return str(code) if names is None else names[code]
