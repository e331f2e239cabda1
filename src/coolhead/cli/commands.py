"""The table of commands, each of which is imported when it runs.

To add a command, write a typer-annotated function and add one line to `GROUPS`.
"""

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from coolhead.cli.terminal import TRUSTED
from coolhead.extras import imported

# By group and name: the module of a command, and one line about it.
LAB = "lab.commands.experiments"
GROUPS = {
    "Calibrate": {
        "fit": ("cli.fit", "Fit a calibrator on saved predictions"),
        "apply": ("cli.apply", "Write calibrated probabilities, check for drift"),
        "compare": ("cli.compare", "Compare methods on left-out domains"),
        "inspect": ("cli.saved", "Show what is inside a saved calibrator"),
        "export": ("cli.saved", "Export a calibrator to ONNX"),
    },
    "New domain": {
        "expect": ("cli.new_domain", "Estimate accuracy without labels"),
        "label": ("cli.new_domain", "Choose the rows to label"),
        "update": ("cli.new_domain", "Adapt a calibrator to a few labels"),
    },
    "Monitor": {
        "drift": ("cli.drift", "Compare a file with the calibration data"),
        "evaluate": ("cli.evaluate", "Score every domain, and fail on a limit"),
    },
    "Experiments": {
        "demo": ("lab.commands.demo", "Run a bundled experiment and show it"),
        "sweep": (LAB, "Run every cell of a protocol"),
        "splits": (LAB, "List what a sweep would run"),
        "tables": (LAB, "Print the tables of a run"),
        "report": (LAB, "Write the report of a run"),
        "results": (LAB, "Run all bundled experiments"),
        "new-protocol": (LAB, "Write a commented protocol file"),
        "extract": ("lab.commands.images", "Turn images into features"),
        "train": ("lab.commands.images", "Train a classifier on features"),
        "reproduce": ("lab.commands.reproduce", "Go from images to the paper's tables"),
    },
}
COMMANDS = {name: found for group in GROUPS.values() for name, found in group.items()}


class LazyCommands(TyperGroup):
    """A group that imports a command when it is asked for, and lists all by table."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import the command of this name; None for an unknown name."""
        if cmd_name not in COMMANDS:
            return None
        module, _ = COMMANDS[cmd_name]
        function = imported(f"coolhead.{module}.{cmd_name.replace('-', '_')}")
        single = typer.Typer(add_completion=False, rich_markup_mode=None)
        single.command(cmd_name)(function)
        return typer.main.get_command(single)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands by group, without an import."""
        for title, group in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name, text) for name, (_, text) in group.items()])


def application() -> typer.Typer:
    """Return the typer application with every command of the table."""
    app = typer.Typer(
        name="coolhead",
        cls=LazyCommands,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        # Panels would cost twice the time of everything else in --help.
        rich_markup_mode=None,
    )
    app.callback()(_root)
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(version("coolhead"))
        raise typer.Exit


def _root(
    trust: Annotated[
        list[str] | None,
        typer.Option(
            metavar="python:MODULE:CLASS",
            help="A calibrator of your own that files may hold; may be repeated.",
        ),
    ] = None,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            is_eager=True,
            callback=_print_version,
            help="Print the version and stop.",
        ),
    ] = False,
) -> None:
    """Honest confidence for classifiers in domains they have never seen."""
    TRUSTED.set(tuple(trust or ()))
