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
                "drawn_from": there.drawn_from,
                "share_outside": None if outside is None else outside.share_outside,
                "witnesses": there.witnesses,
                "threshold": limit,
                "notes": there.notes,
            }
        )
        return
    print(there)
    print_pairs({f"{accuracy:.0%} right": str(limit)})


def open_domain(
    calibrator: Path,
    predictions: Path,
    scores: Any,
    labelled: tuple[list[int], list[int]] | None = None,
) -> Any:
    """A `NewDomain` of a saved calibrator and a file of predictions of any size.

    The file is read block by block; of a long one a sample of rows is kept.

    labelled : rows of the file and their classes, where some are known.
    """
    from coolhead.files import check_inputs

    check_inputs(calibrator, predictions)
    from coolhead.apply import check_columns
    from coolhead.archive import stream_blocks
    from coolhead.archive.sample import sample_blocks, sample_length
    from coolhead.cli.apply import open_both
    from coolhead.new_domain import NewDomain

    fitted, _, opened, kind = open_both(calibrator, predictions, scores)
    if not hasattr(fitted, "temperature"):
        raise ValueError(
            f"{calibrator} holds a {type(fitted).__name__}, which has no temperature "
            "to move to a new domain; wanted a calibrator that divides the logits by "
            "one, such as that of coolhead fit --method auto"
        )
    check_columns(fitted, opened)
    rows, classes = labelled or ([], [])
    most = sample_length(opened.bytes_per_row)
    found = sample_blocks(stream_blocks(opened, scores=kind), most, keep=rows)
    there = NewDomain(
        fitted,
        found.logits,
        found.features,
        row_numbers=found.rows,
        drawn_from=found.n_rows if len(found.rows) < found.n_rows else None,
    )
    return there.with_labels(rows, classes) if rows else there
