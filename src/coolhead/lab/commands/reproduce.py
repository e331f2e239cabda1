"""`coolhead reproduce`: from a folder of images to the paper's tables."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coolhead.cli.terminal import FolderOption, JobsOption, SeedsOption, SettingsOption
from coolhead.lab.commands.images import (
    BACKBONE,
    BackboneOption,
    DeviceOption,
    EpochsOption,
    FrozenOption,
    RateOption,
    SizeOption,
    SkipOption,
    WeightsOption,
    WorkersOption,
    list_folder,
    training_settings,
)

if TYPE_CHECKING:
    from coolhead.lab.protocol import Protocol
    from coolhead.lab.reproduce import Ledger, Step


def reproduce(
    protocol: Annotated[
        str, typer.Argument(help="office-home, pacs, domainnet, or a TOML file.")
    ],
    images: Annotated[Path, typer.Option(help="Folder of images, domain/class/image.")],
    finetune: Annotated[
        bool, typer.Option("--finetune", help="Train the network on every source.")
    ] = False,
    backbone: BackboneOption = BACKBONE,
    weights: WeightsOption = None,
    size: SizeOption = None,
    frozen: FrozenOption = None,
    epochs: EpochsOption = None,
    batch_size: Annotated[int | None, typer.Option(help="Images per step.")] = None,
    learning_rate: RateOption = None,
    seeds: SeedsOption = None,
    settings: SettingsOption = None,
    folder: FolderOption = Path("runs"),
    jobs: JobsOption = None,
    workers: WorkersOption = None,
    device: DeviceOption = "cpu",
    skip_bad: SkipOption = False,
    plan: Annotated[bool, typer.Option("--plan", help="Only list the steps.")] = False,
) -> None:
    """Images to features or fine-tuned networks, then the sweep and its tables.

    Every step is kept; after a kill the same command goes on.
    """
    from coolhead.io.files import check_input, check_inputs, check_output_folder

    check_input(images, "a folder of images")
    check_inputs(weights)
    check_output_folder(folder)
    training = training_settings(
        epochs=epochs, batch_size=batch_size, learning_rate=learning_rate, frozen=frozen
    )
    if training and not finetune:
        names = ", ".join("--" + name.replace("_", "-") for name in training)
        raise ValueError(f"{names} is of training the network: add --finetune")
    from coolhead.cli.terminal import plain_warnings, visible
    from coolhead.lab.commands.experiments import read_seeds
    from coolhead.lab.protocol_files import load_protocol
    from coolhead.lab.reproduce import Ledger, Recipe, plan_steps

    chosen = load_protocol(protocol, settings or (), seeds=read_seeds(seeds))
    table = list_folder(images, skip_bad=skip_bad)
    recipe = Recipe(
        backbone,
        weights,
        size,
        training if finetune else None,
        skip_bad,
        {"workers": workers, "device": device, "progress": True},
    )
    steps, sweep = plan_steps(chosen, table, folder, recipe)
    if any(line.partition("=")[0].strip() == "title" for line in settings or ()):
        sweep = sweep.model_copy(update={"title": chosen.title})
    ledger = Ledger(folder / sweep.name / "steps.json")
    missing = [s for s in steps if not ledger.is_finished(s.name, s.out, s.identity)]
    with plain_warnings():
        print(
            f"{len(table)} images of {len(table.class_names)} classes in "
            f"{visible(', '.join(table.domain_names))}; "
            f"{len(steps) - len(missing)} of {len(steps)} steps are done"
        )
        for step in missing:
            print(f"to do: {visible(step.name)}")
        if not plan:
            _run(missing, sweep, ledger, folder, jobs)


def _run(
    steps: "list[Step]", sweep: "Protocol", ledger: "Ledger", folder: Path, jobs
) -> None:
    from coolhead.cli.terminal import print_table, visible
    from coolhead.lab.commands.experiments import run_and_show
    from coolhead.lab.sweep import end_workers
    from coolhead.progress import progress_bars

    with progress_bars() as report:
        for number, step in enumerate(steps):
            report("steps", number, len(steps), f" {visible(step.name)}")
            step.out.parent.mkdir(parents=True, exist_ok=True)
            with ledger.timed(step.name, step.identity):
                step.work()
    with ledger.timed("sweep", ""):
        outcome = run_and_show(sweep, folder, jobs=jobs)
        end_workers()  # so that their time is counted
    rows = [
        (name, _duration(entry["seconds"]), _duration(entry["cpu_seconds"]))
        for name, entry in ledger.entries.items()
    ]
    print_table(("step", "time", "processor"), rows, "What it took")
    if outcome.n_failed:
        raise typer.Exit(1)


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
