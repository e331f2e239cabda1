"""Whether predictions are still like those that a calibrator was fitted on."""

import hashlib
import json
from pathlib import Path
from typing import Annotated, Any

import typer

from coolhead.cli.apply import BatchArgument, CalibratorArgument
from coolhead.cli.terminal import InputOption, JsonOption

# Exit codes of a monitor's answer; 1 is a refusal, as everywhere.
EXIT_CODES = {False: 0, None: 3, True: 4}


def drift(
    calibrator: CalibratorArgument,
    predictions: BatchArgument,
    state: Annotated[
        Path | None,
        typer.Option(help="JSON file of the counts so far; updated, or made."),
    ] = None,
    scores: InputOption = None,
    as_json: JsonOption = False,
) -> int:
    """Exit with 0 if there is no drift, with 4 if there is, with 3 if unknown.

    With --state, the rows of all calls so far are judged together.
    """
    from coolhead.io.files import check_inputs, check_output

    inputs = check_inputs(calibrator, predictions)
    if state is not None:
        check_output(state, inputs=inputs, endings=(".json",))
    from coolhead.apply import check_columns, monitor_blocks
    from coolhead.cli.apply import build_monitor, open_both, watched
    from coolhead.cli.terminal import plain_warnings, print_json

    fitted, metadata, opened, kind = open_both(calibrator, predictions, scores)
    check_columns(fitted, opened)
    with plain_warnings():
        monitor = build_monitor(fitted, metadata)
        if state is not None and state.exists():
            monitor = read_state(state, calibrator)
        monitor_blocks(fitted, opened, monitor, input=kind)
    if state is not None:
        write_state(state, calibrator, monitor)
    found = {"n_rows": int(monitor.counts["n_rows"]), **watched(monitor)}
    if as_json:
        print_json(found)
    else:
        print(found["drift"])
    return EXIT_CODES[found["alarm"]]


def read_state(path: Path, calibrator: Path) -> Any:
    """Return the monitor of a state file, refused if it is of another calibrator."""
    from coolhead.monitor import DriftMonitor

    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        fitted, counts = content["calibrator"], content["monitor"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{path} is no state of coolhead drift; wanted a file that --state wrote, "
            "or the name of a new one"
        ) from error
    if fitted != _digest(calibrator):
        raise ValueError(
            f"{path} is the state of another calibrator than {calibrator}; wanted its "
            "own, or the name of a new file"
        )
    return DriftMonitor.from_dict(counts)


def write_state(path: Path, calibrator: Path, monitor: Any) -> None:
    """Write the counts of a monitor; the file appears whole or not at all."""
    from coolhead.io.files import write_text

    content = {"calibrator": _digest(calibrator), "monitor": monitor.to_dict()}
    write_text(path, json.dumps(content))


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
