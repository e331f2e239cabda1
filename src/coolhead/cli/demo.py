"""The default experiment, from nothing to a report."""

from pathlib import Path
from typing import Any

import typer

from coolhead.cli.terminal import FolderOption, JobsOption

SOURCE, CALIBRATION, TARGET = "amazon", ("movies", "nyt"), "tweets"
LABELS = 20


def demo(folder: FolderOption = Path("runs"), jobs: JobsOption = None) -> None:
    """Sentiment in four kinds of text: who stays calibrated where nobody has data?"""
    from coolhead.files import check_output_folder

    check_output_folder(folder)
    from coolhead.cli.run import run_and_show
    from coolhead.cli.terminal import plain_warnings
    from coolhead.experiment.protocol_files import load_protocol

    outcome = run_and_show(load_protocol("sentiment"), folder, jobs=jobs)
    with plain_warnings():
        for line in arrive():
            print(line)
    if outcome.n_failed:
        raise typer.Exit(1)


def arrive() -> list[str]:
    """What to expect on tweets of a classifier that knows other texts alone.

    The calibrator and its evidence come from the calibration domains' Small rows; the
    batch and the labels from the target's Small rows; the truth from its Large rows.
    """
    import numpy as np

    from coolhead.calibrators.auto import AutoCalibrator
    from coolhead.calibrators.data import CalibrationData, fit_with
    from coolhead.datasets import load_dataset, split_large_small
    from coolhead.heads import train_head
    from coolhead.new_domain import NewDomain
    from coolhead.new_domain.evidence import gather_evidence

    data = load_dataset("sentiment")
    small = split_large_small(data)
    scored: Any = train_head(data, SOURCE, small=small).apply(data)
    known = small & np.isin(scored.domains, (SOURCE, *CALIBRATION))
    rows = CalibrationData.of(
        scored.logits[known],
        scored.labels[known],
        features=scored.features[known],
        sample_domain=scored.domains[known],
        source_domain=SOURCE,
        reference_features=scored.features[~small & (scored.domains == SOURCE)],
    )
    calibrator = fit_with(AutoCalibrator(), rows)
    away = scored.domains == TARGET
    batch, truth = small & away, ~small & away
    there = NewDomain(
        calibrator,
        scored.logits[batch],
        scored.features[batch],
        evidence=gather_evidence(calibrator, rows),
    )
    chosen = there.rows_to_label(LABELS)
    after = there.with_labels(chosen, scored.labels[batch][chosen])
    right = (scored.logits[truth].argmax(axis=1) == scored.labels[truth]).mean()
    return [
        f"\nA classifier that learned from {SOURCE} arrives at {TARGET}:",
        f"  {there}",
        f"  {after}",
        f"  the truth, on {int(truth.sum())} other rows: {100 * right:.0f} %",
    ]
