"""Write a commented protocol file for the user's archive."""

from pathlib import Path
from typing import Annotated

import typer


def new_protocol(
    out: Annotated[Path, typer.Argument(help="The file to write, .toml.")],
    data: Annotated[
        Path,
        typer.Option(help="Your archive: features (or logits), labels and domains."),
    ],
) -> None:
    """Write a protocol for your data, every key explained, ready for sweep."""
    from coolhead.files import check_input, check_output, write_text

    check_output(out, inputs=[check_input(data)], endings=(".toml",))
    from coolhead.archive import load_archive
    from coolhead.experiment.new_protocol import new_protocol as protocol_text

    write_text(out, protocol_text(load_archive(data), data, out.stem))
    print(f"{out}: coolhead sweep {out} --jobs 2")
