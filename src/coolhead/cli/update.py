"""Move a calibrator to a new domain, given a few labels of it."""

from pathlib import Path
from typing import Annotated

import typer

from coolhead.cli.apply import CalibratorArgument
from coolhead.cli.terminal import InputOption, JsonOption


def update(
    calibrator: CalibratorArgument,
    labels: Annotated[Path, typer.Argument(help="CSV file written by label, filled.")],
    on: Annotated[Path, typer.Option(help="The predictions that the rows belong to.")],
    out: Annotated[Path, typer.Option(help="File for the calibrator, .skops.")],
    scores: InputOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write the calibrator of a new domain, and say what the labels changed."""
    from coolhead.files import check_inputs, check_output

    inputs = check_inputs(calibrator, labels, on)
    check_output(out, inputs=inputs, endings=(".skops",))
    from coolhead.cli.apply import known_classes
    from coolhead.cli.expect import open_domain
    from coolhead.cli.label import read_labels
    from coolhead.cli.terminal import plain_warnings, print_json, print_pairs
    from coolhead.monitor.expected import expect_moved
    from coolhead.persist import read_header, save_calibrator

    metadata = read_header(calibrator)["metadata"]
    with plain_warnings():
        known = read_labels(labels, known_classes(metadata))
        after = open_domain(calibrator, on, scores, labelled=known)
        before = after.without("labels")
        moved = after.calibrator
        about = {**metadata, "moved_to": on.name, "moved_with_labels": after.n_labels}
        # The domain is what `apply` compares a file with from now on.
        rows = after._known.given
        details = moved.details(rows.logits, rows.features)
        about["expected"] = expect_moved(on.name, details).to_dict()
        save_calibrator(moved, out, metadata=about)
    if as_json:
        print_json(
            {
                "out": str(out),
                "n_labels": after.n_labels,
                "offset": moved.offset,
                "before": before.accuracy,
                "after": after.accuracy,
                "notes": after.notes,
            }
        )
        return
    print_pairs(
        {
            "before": str(before),
            "after": str(after),
            "written to": f"{out} (log T moved by {moved.offset:+.3f})",
        }
    )
