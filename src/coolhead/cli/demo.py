"""The default experiment, from nothing to a report."""

from pathlib import Path
from typing import Annotated

import typer


def demo(
    folder: Annotated[Path, typer.Option(help="Folder that holds the runs.")] = Path(
        "runs"
    ),
    jobs: Annotated[
        int | None, typer.Option(help="Worker processes; all cores by default.")
    ] = None,
) -> None:
    """Sentiment in four kinds of text: who stays calibrated where nobody has data?"""
    from coolhead.cli.run import run_and_show
    from coolhead.experiment.protocol import load_protocol

    outcome = run_and_show(load_protocol("sentiment"), folder, jobs=jobs)
    if outcome.n_failed:
        raise typer.Exit(1)
