"""Choose the rows of a new domain whose labels would tell most."""

import csv
from pathlib import Path
from typing import Annotated, Any

import typer

from coolhead.cli.apply import CalibratorArgument
from coolhead.cli.expect import BatchArgument
from coolhead.cli.terminal import InputOption, JsonOption


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
    """Write a CSV file of rows to label; fill its column and hand it to update."""
    from coolhead.files import atomic_path, check_output

    check_output(out, inputs=[calibrator, predictions], endings=(".csv",))
    if (rows is None) == (width is None):
        raise typer.BadParameter("wanted one of --rows and --width")
    from coolhead.cli.expect import open_domain
    from coolhead.cli.terminal import plain_warnings, print_json

    with plain_warnings():
        there = open_domain(calibrator, predictions, scores)
        chosen = there.rows_to_label(rows, width=width)
    with atomic_path(out) as temporary, temporary.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["row", "label"])
        writer.writerows([int(row), ""] for row in chosen)
    if as_json:
        print_json({"out": str(out), "rows": chosen})
        return
    print(f"{len(chosen)} rows to label written to {out}; rows count from 0")


def read_labels(path: Path, class_names: Any) -> tuple[list[int], list[int]]:
    """Row numbers and class numbers of a filled file; empty labels are left out.

    class_names : in the order of the columns, where the calibrator knows them.
    """
    known = {str(name): code for code, name in enumerate(class_names or ())}
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows, labels = _filled_lines(path, csv.DictReader(file), known)
    except (csv.Error, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is no CSV file in UTF-8: {error}") from error
    if not rows:
        raise ValueError(f"{path} has no label yet; wanted at least one filled line")
    return rows, labels


def _filled_lines(
    path: Path, reader: csv.DictReader, known: dict[str, int]
) -> tuple[list[int], list[int]]:
    rows, labels = [], []
    if not {"row", "label"} <= set(reader.fieldnames or ()):
        raise ValueError(
            f"{path} has the columns {', '.join(reader.fieldnames or ())}; wanted "
            "row and label, as written by label"
        )
    for line in reader:
        text, row = (line["label"] or "").strip(), (line["row"] or "").strip()
        if not text:
            continue
        code = known.get(text, text)
        if not _is_number(row) or not _is_number(str(code)):
            raise ValueError(
                f"{path} line {reader.line_num} holds row {row!r} and label "
                f"{text!r}; wanted a row number and a class name or number"
            )
        rows.append(int(row))
        labels.append(int(code))
    return rows, labels


def _is_number(text: str) -> bool:
    """Plain digits, as many as a row number may have."""
    return text.isascii() and text.isdigit() and len(text) < 19
