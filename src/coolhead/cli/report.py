"""Write the report of a run."""

from pathlib import Path
from typing import Annotated

import typer

from coolhead.cli.terminal import JsonOption


def report(
    run: Annotated[Path, typer.Argument(help="Folder of a run, as in runs/digits.")],
    out: Annotated[
        Path | None, typer.Option(help="HTML file; RUN/report.html by default.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Write one HTML page that shows whether to trust the confidence."""
    from coolhead.files import check_input, check_output

    if not check_input(run, "the folder of a run").is_dir():
        raise NotADirectoryError(f"{run} is a file; wanted the folder of a run")
    written = [path for path in run.rglob("*") if path.suffix != ".html"]
    check_output(run / "report.html" if out is None else out, inputs=written)
    from coolhead.cli.terminal import print_json
    from coolhead.report import write_report

    path = write_report(run, out)
    if as_json:
        print_json({"report": str(path), "bytes": path.stat().st_size})
    else:
        print(path)
