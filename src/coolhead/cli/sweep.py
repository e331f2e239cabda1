"""Commands of the experiment: what would run, run it, print its tables."""

from pathlib import Path
from typing import Annotated

import typer

ProtocolArgument = Annotated[
    str, typer.Argument(help="A TOML file, or the name of a bundled protocol.")
]
FolderOption = Annotated[Path, typer.Option(help="Folder that holds the runs.")]


def splits(
    protocol: ProtocolArgument,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON array.")] = False,
) -> None:
    """List which domain plays which role; needs no data."""
    import json

    from coolhead.experiment.protocol import load_protocol
    from coolhead.experiment.splits import make_splits

    found = make_splits(load_protocol(protocol).roles)
    if as_json:
        print(json.dumps([split.as_lists() for split in found]))
        return
    from coolhead.experiment.printing import print_splits

    print_splits(found)


def sweep(
    protocol: ProtocolArgument,
    jobs: Annotated[
        int | None, typer.Option(help="Worker processes; all cores by default.")
    ] = None,
    folder: FolderOption = Path("runs"),
    seeds: Annotated[
        str | None, typer.Option(help="Seeds in place of the file's: 0,1,2.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="An archive in place of the file's data.")
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(help="Address of a Dask scheduler, tcp://…")
    ] = None,
) -> None:
    """Train the classifiers, evaluate every split, write results and tables."""
    from coolhead.files import check_input, check_output_folder

    check_output_folder(folder)
    if data is not None:
        check_input(data)
    from coolhead.experiment.demo import run_and_show
    from coolhead.experiment.protocol import load_protocol

    changes = {"seeds": _numbers(seeds), "data": _archive(data)}
    loaded = load_protocol(protocol, **changes)
    outcome = run_and_show(loaded, folder, jobs=jobs, scheduler=scheduler)
    if outcome.n_failed:
        raise typer.Exit(1)


def tables(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run.")],
    form: Annotated[
        str, typer.Option("--format", help="markdown, latex or csv.")
    ] = "markdown",
    out: Annotated[
        Path | None, typer.Option(help="Folder for one file per table.")
    ] = None,
) -> None:
    """Print every table of a run, the paper's numbers beside ours where they exist."""
    from coolhead.files import check_input, check_output_folder

    check_input(run, "the folder of a run")
    if out is not None:
        check_output_folder(out)
    from coolhead.experiment.tables import all_tables, render_table, write_tables

    if out is not None:
        for path in write_tables(run, out, form):
            print(path)
        return
    print("\n\n".join(render_table(table, form) for table in all_tables(run)))


def _numbers(text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"--seeds is {text!r}; wanted numbers as in 0,1,2") from None


def _archive(path: Path | None) -> dict[str, str] | None:
    return None if path is None else {"kind": "archive", "path": str(path)}
