"""Run an experiment in front of a person: progress, pages, summary and answer."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coolhead.cli.terminal import (
    FolderOption,
    JobsOption,
    JsonOption,
    SeedsOption,
    SettingsOption,
    print_table,
    print_text,
    visible,
)

if TYPE_CHECKING:
    from coolhead.lab.protocol import Protocol
    from coolhead.lab.sweep import Outcome
    from coolhead.report.tables import Table


def sweep_with_progress(
    protocol: "Protocol",
    folder: Path,
    *,
    jobs: int | None = None,
    scheduler: str | None = None,
) -> "Outcome":
    """Run a sweep under progress bars, on this machine or on a Dask cluster."""
    from joblib import cpu_count

    from coolhead.lab.sweep import run_sweep
    from coolhead.progress import progress_bars

    if scheduler is None and jobs is None:
        jobs = cpu_count()
    with progress_bars() as show:

        def report(what: str, done: int, failed: int, total: int) -> None:
            show(what, done, total, f" {failed} failed")

        return run_sweep(
            protocol, folder, jobs=jobs, scheduler=scheduler, report=report
        )


def run_and_show(
    protocol: "Protocol",
    folder: Path,
    *,
    jobs: int | None = None,
    scheduler: str | None = None,
) -> "Outcome":
    """Sweep a protocol, write tables, figures and report, print the summary."""
    from coolhead.lab.report import answers
    from coolhead.lab.results import read_table
    from coolhead.lab.tables.all_tables import all_tables

    outcome = sweep_with_progress(protocol, folder, jobs=jobs, scheduler=scheduler)
    if not read_table(outcome.run, "results").is_empty():
        tables = all_tables(outcome.run)
        write_pages(outcome.run, tables)
        for table in tables:
            if table.name.endswith("summary"):
                show_table(table)
        for sentence in answers(outcome.run):
            print_text(sentence)
    show_outcome(outcome)
    return outcome


def write_pages(run: Path, tables: "list[Table]") -> None:
    """Tables as Markdown and CSV, results as CSV, figures, and the report."""
    from coolhead.lab.figures import write_figures
    from coolhead.lab.report import write_report
    from coolhead.lab.results import write_results_csv
    from coolhead.lab.tables.all_tables import write_tables

    for form in ("markdown", "csv"):
        write_tables(tables, run / "tables", form)
    write_results_csv(run)
    write_figures(run)
    write_report(run, tables=tables)


def show_table(table: "Table") -> None:
    """Print a table and its notes."""
    from coolhead.report.tables import page_layout

    header, body = page_layout(table)
    extra = ("gain", "null", "of target")
    print_table(header, body, table.title, table.notes, extra)


def show_outcome(outcome: "Outcome") -> None:
    """Where the results are, every failure with its reason, what was not checked."""
    done = outcome.n_cells - outcome.n_failed
    found = f", {outcome.n_found} found from before" if outcome.n_found else ""
    print(f"{done} of {outcome.n_cells} cells done{found}: {visible(outcome.run)}")
    for head, lines in (("failed", outcome.errors), ("note", outcome.notes)):
        for line in lines:
            print_text(f"{head}: {line}")
    report = outcome.run / "report.html"
    if report.is_file():
        print(f"open {visible(report)}")


ProtocolArgument = Annotated[
    str, typer.Argument(help="A TOML file, or the name of a bundled protocol.")
]


def splits(
    protocol: ProtocolArgument,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON array.")] = False,
) -> None:
    """List which domain plays which role; needs no data."""
    import json

    from coolhead.lab.plan import make_splits
    from coolhead.lab.protocol_files import load_protocol

    found = make_splits(load_protocol(protocol).roles)
    if as_json:
        print(json.dumps([split.as_lists() for split in found]))
        return
    from coolhead.cli.terminal import print_table

    columns = ("split", "source", "calibration", "target")
    roles = [(split.source, split.calibration, split.target) for split in found]
    rows = [
        (str(number), *map(", ".join, domains))
        for number, domains in enumerate(roles, 1)
    ]
    print_table(columns, rows, "Roles of the domains")


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
        str | None, typer.Option(help="Address of a Dask scheduler, tcp://HOST:PORT")
    ] = None,
    settings: SettingsOption = None,
) -> None:
    """Train the classifiers, evaluate every split, write results and tables."""
    from coolhead.io.files import check_inputs, check_output_folder

    check_output_folder(folder)
    check_inputs(data, train_data)
    from coolhead.lab.protocol_files import load_protocol

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
    from coolhead.io.files import check_input, check_output_folder

    check_input(run, "the folder of a run")
    if out is not None:
        check_output_folder(out)
    from coolhead.cli.terminal import visible
    from coolhead.lab.tables.all_tables import all_tables, write_tables
    from coolhead.report.tables import render_table

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
    from coolhead.lab.protocol import ArchiveData
    from coolhead.lab.protocol_files import change_protocol

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


def report(
    run: Annotated[Path, typer.Argument(help="Folder of a run, as in runs/digits.")],
    out: Annotated[
        Path | None, typer.Option(help="HTML file; RUN/report.html by default.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Write one HTML page that shows whether to trust the confidence."""
    from coolhead.io.files import check_input, check_output

    if not check_input(run, "the folder of a run").is_dir():
        raise NotADirectoryError(f"{run} is a file; wanted the folder of a run")
    written = [path for path in run.rglob("*") if path.suffix != ".html"]
    check_output(run / "report.html" if out is None else out, inputs=written)
    from coolhead.cli.terminal import print_json
    from coolhead.lab.report import write_report

    path = write_report(run, out)
    if as_json:
        print_json({"report": str(path), "bytes": path.stat().st_size})
    else:
        print(path)


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
    from coolhead.io.files import (
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
    from coolhead.lab.record import read_run_record
    from coolhead.lab.summary import result_protocols, results_page

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


def new_protocol(
    out: Annotated[Path, typer.Argument(help="The file to write, .toml.")],
    data: Annotated[
        Path,
        typer.Option(help="Your archive: features (or logits), labels and domains."),
    ],
) -> None:
    """Write a protocol for your data, ready for sweep."""
    from coolhead.io.files import check_input, check_output, write_text

    check_output(out, inputs=[check_input(data)], endings=(".toml",))
    from coolhead.io.reading import load_archive
    from coolhead.lab.protocol_files import new_protocol as protocol_text

    write_text(out, protocol_text(load_archive(data), data, out.stem))
    print(f"{out}: coolhead sweep {out} --jobs 2")
