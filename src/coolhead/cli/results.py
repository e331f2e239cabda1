"""The measured table of the project, by one command."""

from pathlib import Path
from typing import Annotated

import typer

from coolhead.cli.terminal import FolderOption, JobsOption


def results(
    pacs: Annotated[
        Path | None, typer.Option(help="Archive of PACS features (npz, safetensors).")
    ] = None,
    runs: Annotated[
        list[Path] | None,
        typer.Option("--run", help="Finished run to add to the page; repeat."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Markdown file to write.")] = Path(
        "experiments/RESULTS.md"
    ),
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds.")] = 5,
    folder: FolderOption = Path("runs/results"),
    jobs: JobsOption = None,
) -> None:
    """Run sentiment, digits and PACS with several seeds and write what came out.

    Runs of `coolhead sweep` and `coolhead reproduce` follow them on the page.
    """
    from coolhead.files import (
        check_input,
        check_inputs,
        check_output,
        check_output_folder,
        write_text,
    )

    inputs = check_inputs(pacs)
    inputs += [check_input(run, "the folder of a run") for run in runs or ()]
    out.parent.mkdir(parents=True, exist_ok=True)
    check_output(out, inputs=inputs)
    check_output_folder(folder)
    from coolhead.cli.run import sweep_with_progress
    from coolhead.experiment.record import read_run_record
    from coolhead.experiment.summary import result_protocols, results_page

    for run in runs or ():
        read_run_record(run)
    outcomes = [
        sweep_with_progress(protocol, folder, jobs=jobs)
        for protocol in result_protocols(pacs, seeds)
    ]
    finished = [*(outcome.run for outcome in outcomes), *(runs or ())]
    write_text(out, results_page(finished, pacs is not None))
    print(out)
    if any(outcome.n_failed for outcome in outcomes):
        raise typer.Exit(1)
