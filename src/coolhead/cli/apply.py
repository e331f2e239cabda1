"""Apply a saved calibrator to a file of predictions of any size."""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from coolhead.cli.terminal import TRUSTED, InputOption, JsonOption

CalibratorArgument = Annotated[Path, typer.Argument(help="File written by fit.")]
BatchArgument = Annotated[
    Path, typer.Argument(help="Predictions without labels: npz, Parquet, CSV, ...")
]


class FailOn(StrEnum):
    """What `apply` can fail for."""

    DRIFT = "drift"


def apply(
    calibrator: CalibratorArgument,
    predictions: Annotated[
        Path, typer.Argument(help="Predictions: npz, npy, Parquet, CSV, ...")
    ],
    out: Annotated[
        Path, typer.Option(help="Table .parquet, .arrow, .csv; or array .npy.")
    ],
    keep: Annotated[
        str | None,
        typer.Option(help="Further columns of a table to write along, as in a,b."),
    ] = None,
    fail_if: Annotated[
        FailOn | None,
        typer.Option(help="Exit with 4 on drift, with 3 if that is unknown."),
    ] = None,
    scores: InputOption = None,
    as_json: JsonOption = False,
) -> int:
    """Write calibrated probabilities, block by block, in constant memory."""
    from coolhead.io.files import check_inputs, check_output

    check_output(out, inputs=check_inputs(calibrator, predictions))
    from coolhead.apply import apply_calibrator
    from coolhead.cli.drift import EXIT_CODES
    from coolhead.cli.terminal import (
        plain_name,
        plain_warnings,
        print_json,
        print_pairs,
    )
    from coolhead.io.write import ENDINGS
    from coolhead.progress import progress_bar

    check_output(out, endings=ENDINGS)
    kept = () if keep is None else [name.strip() for name in keep.split(",")]
    fitted, metadata, opened, kind = open_both(calibrator, predictions, scores, kept)
    with (
        plain_warnings(),
        progress_bar("apply", opened.n_rows, shown=not as_json) as advance,
    ):
        monitor = build_monitor(fitted, metadata)
        settings = {"input": kind, "monitor": monitor, "progress": advance}
        n_rows = apply_calibrator(fitted, opened, out, **settings)
    summary = {"out": str(out), "n_rows": n_rows, **watched(monitor)}
    if as_json:
        print_json(summary)
    else:
        found = {name: value for name, value in summary.items() if value is not None}
        print_pairs({plain_name(name): value for name, value in found.items()})
    return 0 if fail_if is None else EXIT_CODES[summary["alarm"]]


def open_both(
    calibrator: Path, predictions: Path, scores: Any, keep: Sequence[str] = ()
) -> tuple:
    """Open both files: calibrator, its metadata, predictions, kind of scores."""
    from coolhead.io.calibrators import read_header
    from coolhead.io.reading import open_predictions

    fitted = load_fitted(calibrator)
    metadata = read_header(calibrator)["metadata"]
    opened = open_predictions(predictions, fitted.class_names_, keep=keep)
    return fitted, metadata, opened, wanted_input(scores, metadata, opened)


def load_fitted(path: Path) -> Any:
    """Load a calibrator of logits, which the commands read from files."""
    from coolhead.io.calibrators import load_calibrator, predicts_from_logits

    fitted = load_calibrator(path, trusted=_trusted())
    if not predicts_from_logits(fitted):
        raise ValueError(
            f"{path} holds a {type(fitted).__name__}, which predicts from X and not "
            "from saved logits; use coolhead.load_calibrator(path).predict_proba(X), "
            "or save its part calibrator_ alone with coolhead.save_calibrator"
        )
    return fitted


def _trusted() -> list[str]:
    """Import the types named with --trust; return their full names."""
    from coolhead.plugins import full_name, load_plugin

    return [full_name(load_plugin(name)) for name in TRUSTED.get()]


def build_monitor(fitted: Any, metadata: dict[str, Any]) -> Any:
    """Make a monitor that compares with the calibration domains of the fit."""
    import warnings

    from coolhead.monitor import DriftMonitor, Expected

    shown = metadata.get("expected")
    if not shown:
        known = hasattr(fitted, "evidence_")
        return DriftMonitor.for_calibrator(fitted) if known else DriftMonitor()
    try:
        return DriftMonitor(Expected.from_dict(shown))
    except ValueError as error:
        warnings.warn(f"drift check skipped: {error}", stacklevel=2)
        return DriftMonitor()


def watched(monitor: Any) -> dict[str, Any]:
    """Summarise the file as the monitor counted it."""
    signal = monitor.check()
    return {
        "mean_confidence": monitor.mean_confidence,
        "ece": monitor.expected_calibration_error,
        "share_outside": signal.of("features").found,
        "alarm": signal.alarm,
        "drift": str(signal),
    }


def wanted_input(scores: Any, metadata: dict[str, Any], opened: Any) -> str:
    """Return the kind of scores: as given, as in fit, or by the names in the file."""
    if scores is not None:
        return str(scores)
    usual = str(metadata.get("input", "logits"))
    other = "probabilities" if usual == "logits" else "logits"
    return other if other in opened.widths and usual not in opened.widths else usual
