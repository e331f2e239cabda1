"""`coolhead expect`, `label` and `update`: a classifier in a new domain."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from coolhead.cli.apply import BatchArgument, CalibratorArgument
from coolhead.cli.terminal import InputOption, JsonOption


def expect(
    calibrator: CalibratorArgument,
    predictions: BatchArgument,
    accuracy: Annotated[
        float, typer.Option(help="Accuracy that answered rows shall have.")
    ] = 0.95,
    need: Annotated[
        float | None,
        typer.Option(help="Accuracy that is needed, as in 0.8: use the model here?"),
    ] = None,
    scores: InputOption = None,
    as_json: JsonOption = False,
) -> None:
    """Estimate the accuracy in a new domain, with an interval, without labels."""
    from coolhead.cli.terminal import plain_warnings, print_json, print_text

    with plain_warnings():
        there = open_domain(calibrator, predictions, scores)
        limit = there.threshold(accuracy)
        verdict = None if need is None else there.verdict(need)
    if as_json:
        names = ("accuracy", "n_rows", "drawn_from", "estimates", "notes")
        found = {name: getattr(there, name) for name in names}
        outside = getattr(there.outside, "share_outside", None)
        found |= {"share_outside": outside, "threshold": limit, "verdict": verdict}
        print_json(found)
        return
    if verdict is not None:
        print_text(verdict)
    print_text(there)
    print_text(f"to be right in {accuracy:.0%}: {limit}")


def open_domain(
    calibrator: Path, predictions: Path, scores: Any, keep: Sequence[int] = ()
) -> Any:
    """Make a `NewDomain` of a saved calibrator and a file of any size.

    The file is read block by block; of a long one a sample of rows is kept, with the
    rows `keep` among them.
    """
    from coolhead.io.files import check_inputs

    check_inputs(calibrator, predictions)
    from coolhead.apply import check_columns
    from coolhead.cli.apply import open_both
    from coolhead.io.reading import sample_blocks, sample_length, stream_blocks
    from coolhead.new_domain import NewDomain

    fitted, _, opened, kind = open_both(calibrator, predictions, scores)
    if not hasattr(fitted, "temperature"):
        raise ValueError(
            f"{calibrator} holds a {type(fitted).__name__}, which has no temperature "
            "to move to a new domain; wanted a calibrator that divides the logits by "
            "one, such as that of coolhead fit --method auto"
        )
    check_columns(fitted, opened)
    most = sample_length(opened.bytes_per_row)
    found = sample_blocks(stream_blocks(opened, scores=kind), most, keep=keep)
    return NewDomain(
        fitted,
        found.logits,
        found.features,
        row_numbers=found.rows,
        drawn_from=found.n_rows if len(found.rows) < found.n_rows else None,
    )


def label(
    calibrator: CalibratorArgument,
    predictions: BatchArgument,
    out: Annotated[Path, typer.Option(help="CSV file to fill in the labels.")],
    rows: Annotated[int | None, typer.Option(help="How many rows.")] = None,
    width: Annotated[
        float | None,
        typer.Option(help="Or: wanted width of the interval of accuracy, as in 0.1."),
    ] = None,
    scores: InputOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write a CSV file of rows to label, whose column `label` is then filled in."""
    from coolhead.io.files import atomic_path, check_output

    check_output(out, inputs=[calibrator, predictions], endings=(".csv",))
    if (rows is None) == (width is None):
        raise typer.BadParameter("wanted one of --rows and --width")
    import polars as pl

    from coolhead.cli.terminal import plain_warnings, print_json
    from coolhead.io.write import write_csv

    with plain_warnings():
        there = open_domain(calibrator, predictions, scores)
        chosen = there.rows_to_label(rows, width=width)
    with atomic_path(out) as temporary:
        write_csv(pl.DataFrame({"row": chosen, "label": None}), temporary)
    if as_json:
        print_json({"out": str(out), "rows": chosen})
        return
    print(f"{len(chosen)} rows to label written to {out}; rows count from 0")


def read_labels(path: Path) -> tuple[list[int], list[str]]:
    """Return row numbers and labels of a filled file; empty labels are left out."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            names = reader.fieldnames or ()
            lines = [(reader.line_num, line) for line in reader]
    except (csv.Error, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is no CSV file in UTF-8: {error}") from error
    if not {"row", "label"} <= set(names):
        raise ValueError(
            f"{path} has the columns {', '.join(names)}; wanted row and label, as "
            "written by label"
        )
    rows, labels = [], []
    for number, line in lines:
        text, row = (line["label"] or "").strip(), (line["row"] or "").strip()
        # As many digits as a row number may have.
        if text and not (row.isascii() and row.isdigit() and len(row) < 19):
            raise ValueError(
                f"{path} line {number} holds row {row!r} and label {text!r}; wanted a "
                "row number and a class name or number"
            )
        if text:
            rows.append(int(row))
            labels.append(text)
    if not rows:
        raise ValueError(f"{path} has no label yet; wanted at least one filled line")
    return rows, labels


def update(
    calibrator: CalibratorArgument,
    labels: Annotated[
        Path, typer.Argument(help="CSV file written by label, filled in.")
    ],
    on: Annotated[Path, typer.Option(help="The predictions that the rows belong to.")],
    out: Annotated[Path, typer.Option(help="File for the calibrator, .skops.")],
    scores: InputOption = None,
    as_json: JsonOption = False,
) -> None:
    """Adapt a calibrator to the labels of a few rows of a new domain."""
    from coolhead.io.files import check_inputs, check_output

    inputs = check_inputs(calibrator, labels, on)
    check_output(out, inputs=inputs, endings=(".skops",))
    from coolhead.cli.terminal import plain_warnings, print_json, print_pairs
    from coolhead.io.calibrators import read_header, save_calibrator
    from coolhead.io.predictions import naming
    from coolhead.monitor.expected import expect_adapted
    from coolhead.numerics.classes import typed_labels

    metadata = read_header(calibrator)["metadata"]
    with plain_warnings():
        rows, texts = read_labels(labels)
        before = open_domain(calibrator, on, scores, keep=rows)
        with naming(labels):
            names = before.calibrator.class_names_
            after = before.with_labels(rows, typed_labels(texts, names))
        moved = after.calibrator
        about = {**metadata, "moved_to": on.name, "moved_with_labels": after.n_labels}
        # The domain is what `apply` compares a file with from now on.
        given = after._state.given
        details = moved.details(given.logits, given.features)
        about["expected"] = expect_adapted(on.name, details).to_dict()
        save_calibrator(moved, out, metadata=about)
    if as_json:
        found = {"out": str(out), "n_labels": after.n_labels, "offset": moved.offset}
        found |= {"before": before.accuracy, "after": after.accuracy}
        print_json({**found, "notes": after.notes})
        return
    print_pairs(
        {
            "before": str(before),
            "after": str(after),
            "written to": f"{out} (log T moved by {moved.offset:+.3f})",
        }
    )
