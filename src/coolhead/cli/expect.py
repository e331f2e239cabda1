"""What to expect of a classifier on predictions of a domain without labels."""

from pathlib import Path
from typing import Annotated, Any

import typer

from coolhead.cli.apply import CalibratorArgument
from coolhead.cli.terminal import InputOption, JsonOption

BatchArgument = Annotated[
    Path, typer.Argument(help="Predictions without labels: npz, Parquet, CSV, ...")
]


def expect(
    calibrator: CalibratorArgument,
    predictions: BatchArgument,
    accuracy: Annotated[
        float, typer.Option(help="Accuracy that answered rows shall have.")
    ] = 0.95,
    scores: InputOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say how often the classifier is right in a new domain, and how sure that is."""
    from coolhead.cli.terminal import plain_warnings, print_json, print_pairs

    with plain_warnings():
        there = open_domain(calibrator, predictions, scores)
        limit = there.threshold(accuracy)
    if as_json:
        outside = there.outside
        print_json(
            {
                "accuracy": there.accuracy,
                "n_rows": there.n_rows,
                "share_outside": None if outside is None else outside.share_outside,
                "evidence": there.evidence,
                "threshold": limit,
                "notes": there.notes,
            }
        )
        return
    print(there)
    print_pairs({f"{accuracy:.0%} right": str(limit)})


def open_domain(calibrator: Path, predictions: Path, scores: Any) -> Any:
    """A `NewDomain` of a saved calibrator and a file of predictions."""
    from coolhead.files import check_input

    check_input(calibrator)
    check_input(predictions)
    from coolhead.archive import open_predictions
    from coolhead.archive.stream import checked_scores, score_column
    from coolhead.cli.apply import (
        check_class_names,
        known_classes,
        load_fitted,
        wanted_input,
    )
    from coolhead.new_domain import NewDomain
    from coolhead.persist import read_header

    fitted = load_fitted(calibrator)
    metadata = read_header(calibrator)["metadata"]
    opened = open_predictions(predictions, known_classes(metadata))
    check_class_names(metadata, opened)
    kind = wanted_input(scores, metadata, opened)
    name = score_column(opened, kind)
    columns = opened.load()
    logits = checked_scores(columns, name, kind)
    return NewDomain(fitted, logits, columns.get("features"))
