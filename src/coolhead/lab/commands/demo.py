"""`coolhead demo`: an experiment that is bundled, and what it shows."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from coolhead.cli.terminal import FolderOption, JobsOption, print_table, print_text
from coolhead.lab.commands.experiments import (
    show_outcome,
    sweep_with_progress,
    write_pages,
)

if TYPE_CHECKING:
    from coolhead.report.tables import RunScores

PROTOCOL = "sentiment"
# Chosen before any target was seen: the default, and the simplest alternative to it.
DEFAULT, SIMPLEST, LABELLED = "auto", "set-level", "auto+batch+20"
ROWS = {
    "uncalibrated": "Uncalibrated",
    "source-only": "Source-only: source domain alone",
    SIMPLEST: "Set-level: one temperature",
    "ensemble": "Ensemble: one for each cluster",
    DEFAULT: "Auto, the default",
    LABELLED: "Auto + 20 labels of the target",
    "target-only": "Target-only: all labels (oracle)",
}
EXPECTED = ("auto+batch", LABELLED, "auto+batch+100")


def demo(folder: FolderOption = Path("runs"), jobs: JobsOption = None) -> None:
    """Train and calibrate on kinds of text, and predict a kind never seen.

    Each of four domains is the target of three splits: a classifier trained on one
    domain, calibrated on the other two.
    """
    from coolhead.io.files import check_output_folder

    check_output_folder(folder)
    from coolhead.lab.protocol_files import load_protocol
    from coolhead.lab.results import load_scores
    from coolhead.lab.tables.all_tables import all_tables

    outcome = sweep_with_progress(load_protocol(PROTOCOL), folder, jobs=jobs)
    for scores in load_scores(outcome.run).values():
        write_pages(outcome.run, all_tables(outcome.run))
        print_errors(scores)
        print_expected_accuracy(outcome.run)
    print_text(
        "All methods, by split: the report below. Data on which calibration harms some "
        "splits: coolhead sweep digits. Your own predictions: coolhead fit --help."
    )
    show_outcome(outcome)
    if outcome.n_failed:
        raise typer.Exit(1)


def print_errors(scores: "RunScores") -> None:
    """Print calibration errors with intervals over splits, and what follows."""
    import numpy as np

    from coolhead.cli.terminal import in_percent
    from coolhead.metrics import paired_bootstrap_mean
    from coolhead.report.tables import column_mean, split_means

    errors = {name: split_means(scores, name) / 100 for name in ROWS}
    if any(np.isnan(values).any() for values in errors.values()):
        print_text("Some splits failed: the report has what is left.")
        return
    n_splits = len(scores.splits)
    found = paired_bootstrap_mean(errors, baseline=SIMPLEST)
    accuracy = {n: column_mean(scores.of(n), "accuracy") or np.nan for n in ROWS}
    worse = {n: int((own > errors["uncalibrated"]).sum()) for n, own in errors.items()}
    print_table(
        ("calibration", "mean ECE", "accuracy", "splits harmed"),
        [
            (label, in_percent(found.estimates[n]), f"{accuracy[n]:.1f}", str(worse[n]))
            for n, label in ROWS.items()
        ],
        f"Calibration error and accuracy in domains never seen, in % [95 % interval "
        f"over {n_splits} splits]",
        ["A split is harmed if its error is higher than uncalibrated."],
    )
    mean = {name: f"{100 * values.mean():.1f} %" for name, values in errors.items()}
    change = found.differences[DEFAULT]
    print_text(
        f"Auto, the default, takes the mean ECE from {mean['uncalibrated']} to "
        f"{mean[DEFAULT]}; the simplest alternative, one temperature for all "
        f"calibration domains, to {mean[SIMPLEST]} (difference "
        f"{100 * change.estimate:+.2f} points, 95 % interval {100 * change.low:+.2f} "
        f"to {100 * change.high:+.2f})."
    )
    for name, than, what in (
        (DEFAULT, SIMPLEST, "Auto is worse than set-level"),
        (LABELLED, DEFAULT, "20 labels raise the ECE of Auto"),
    ):
        rise = errors[name] - errors[than]
        most = rise.argmax()
        if rise[most] > 0:
            print_text(
                f"{what} in {(rise > 0).sum()} of {n_splits} splits, most in "
                f"{scores.splits[most]}: {100 * errors[name][most]:.1f} % against "
                f"{100 * errors[than][most]:.1f} %."
            )
    print_text(
        f"20 labels change the accuracy from {accuracy[DEFAULT]:.1f} % to "
        f"{accuracy[LABELLED]:.1f} %, and the mean ECE to {mean[LABELLED]}."
    )


def print_expected_accuracy(run: Path) -> None:
    """Print how far the accuracy expected in a new domain is from the true one."""
    from coolhead.lab.results import read_or_empty
    from coolhead.report.diagnostics import adaptation_means

    found = adaptation_means(read_or_empty(run, "adaptation"))
    means = {row["method"]: row for row in found}
    print()
    print_table(
        ("labels", "mean error", "90 % intervals that cover it", "median width"),
        [
            (
                str(row["n_labels"]),
                f"{row['off']:.1f}",
                f"{row['n_covered']} of {row['n']}",
                f"{row['width']:.1f}",
            )
            for row in (means[name] for name in EXPECTED if name in means)
        ],
        "Accuracy expected in the new domain against the true one, in points, over "
        "all splits and draws of labels",
    )
