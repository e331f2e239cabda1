"""Commands of the experiment: what would run, run it, print its tables."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coolhead.cli.terminal import FolderOption, JobsOption, SeedsOption, SettingsOption

if TYPE_CHECKING:
    from coolhead.experiment.protocol import Protocol

ProtocolArgument = Annotated[
    str, typer.Argument(help="A TOML file, or the name of a bundled protocol.")
]


def splits(
    protocol: ProtocolArgument,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON array.")] = False,
) -> None:
    """List which domain plays which role; needs no data."""
    import json

    from coolhead.experiment.protocol_files import load_protocol
    from coolhead.experiment.splits import make_splits

    found = make_splits(load_protocol(protocol).roles)
    if as_json:
        print(json.dumps([split.as_lists() for split in found]))
        return
    from coolhead.cli.terminal import print_table

    columns = ("", "source", "calibration", "target")
    roles = [(split.source, split.calibration, split.target) for split in found]
    rows = [
        (str(number), *map(", ".join, domains))
        for number, domains in enumerate(roles, 1)
    ]
    print_table(columns, rows)


def sweep(
    protocol: ProtocolArgument,
    jobs: JobsOption = None,
    folder: FolderOption = Path("runs"),
    seeds: SeedsOption = None,
    data: Annotated[
        Path | None, typer.Option(help="An archive in place of the file's data.")
    ] = None,
    train_data: Annotated[
        Path | None, typer.Option(help="An archive to train on, apart from --data.")
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(help="Address of a Dask scheduler, tcp://…")
    ] = None,
    settings: SettingsOption = None,
) -> None:
    """Train the classifiers, evaluate every split, write results and tables."""
    from coolhead.files import check_inputs, check_output_folder

    check_output_folder(folder)
    check_inputs(data, train_data)
    from coolhead.cli.run import run_and_show
    from coolhead.experiment.protocol_files import load_protocol

    loaded = load_protocol(protocol, settings or (), seeds=read_seeds(seeds))
    loaded = with_archives(loaded, data, train_data)
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
    from coolhead.cli.terminal import visible
    from coolhead.experiment.tables import all_tables, render_table, write_tables

    if out is not None:
        for path in write_tables(all_tables(run), out, form):
            print(path)
        return
    text = "\n\n".join(render_table(table, form) for table in all_tables(run))
    print("\n".join(map(visible, text.split("\n"))))


def read_seeds(text: str | None) -> list[int] | None:
    """The numbers of ``0,1,2``; None stays None."""
    if text is None:
        return None
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"--seeds is {text!r}; wanted numbers as in 0,1,2") from None


def with_archives(
    protocol: "Protocol", data: Path | None, train_data: Path | None
) -> "Protocol":
    """The protocol on other archives of the same domains; None keeps what it says.

    A protocol whose classifiers learn from an archive of their own needs both: rows
    of the first alone would be trained on and calibrated with alike.
    """
    from coolhead.experiment.protocol_data import ArchiveData
    from coolhead.experiment.protocol_files import change_protocol

    if data is None and train_data is None:
        return protocol
    old = protocol.data
    kept = old.model_dump() if isinstance(old, ArchiveData) else {}
    if data is not None and kept.get("train_path") and train_data is None:
        raise ValueError(
            f"--data is {data}, but protocol {protocol.name} trains on an archive of "
            f"its own ({kept['train_path']}): give that too, --train-data FILE"
        )
    if data is None and not kept:
        raise ValueError(
            f"--train-data is {train_data}, but the data of protocol {protocol.name} "
            "are no archive: give --data FILE too"
        )
    given = {"path": data, "train_path": train_data}
    archives = {"kind": "archive"} | kept
    archives |= {key: path for key, path in given.items() if path is not None}
    return change_protocol(protocol, data=archives)
