"""Evaluate a saved calibrator on labelled predictions, domain by domain."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from coolhead.cli.apply import CalibratorArgument
from coolhead.cli.gate import judge, read_condition, write_junit
from coolhead.cli.terminal import DrawsOption, InputOption, JsonOption, visible


def evaluate(
    calibrator: CalibratorArgument,
    predictions: Annotated[Path, typer.Argument(help="Labelled predictions.")],
    report: Annotated[
        Path | None, typer.Option(help="Write a report too, one HTML file.")
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(help="Domains the classifier was trained on, as in a,b."),
    ] = None,
    scores: InputOption = None,
    draws: DrawsOption = 1000,
    fail_if: Annotated[
        list[str] | None,
        typer.Option(help="Exit with 1 if so in any domain: 'ece > 0.05'."),
    ] = None,
    junit: Annotated[
        Path | None, typer.Option(help="Write what --fail-if found as JUnit XML.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Print calibration error and likelihood of every domain, with intervals."""
    from coolhead.files import check_inputs, check_output

    inputs = check_inputs(calibrator, predictions)
    places = [
        check_output(path, inputs=inputs)
        for path in (report, junit)
        if path is not None
    ]
    if len(set(places)) < len(places):
        raise typer.BadParameter(f"--report and --junit are both {report}; wanted two")
    conditions = [read_condition(text) for text in fail_if or ()]
    if junit is not None and not conditions:
        raise typer.BadParameter("--junit has nothing to tell without --fail-if")
    from coolhead.apply import check_columns
    from coolhead.archive import load_archive
    from coolhead.cli.apply import known_classes, open_both
    from coolhead.cli.source import split_names
    from coolhead.cli.terminal import plain_warnings, print_json
    from coolhead.evaluate import evaluate_domains

    fitted, metadata, opened, kind = open_both(calibrator, predictions, scores)
    metadata["domains"] = known_domains(metadata)
    names = known_classes(metadata)
    check_columns(fitted, opened)
    with plain_warnings():
        rows = load_archive(predictions, input=kind, labelled=True, class_names=names)
        lines = evaluate_domains(
            fitted,
            rows,
            fitted_on=metadata["domains"],
            source=split_names(source) or known_sources(metadata, rows),
            n_draws=draws,
        )
        if report is not None:
            from coolhead.report import write_evaluation_report

            write_evaluation_report(report, fitted, rows, lines, metadata)
    verdicts = judge(conditions, lines)
    failed = [verdict for verdict in verdicts if verdict.failed]
    if junit is not None:
        write_junit(verdicts, junit)
    if as_json:
        where = None if report is None else str(report)
        print_json({"domains": lines, "report": where, "failed": failed})
    else:
        _print_lines(lines)
        if report is not None:
            print(f"report: {report}")
    for verdict in failed:
        told = f"{verdict.domain}: {verdict.condition} ({verdict.value:.4g})"
        print(f"coolhead: failed in {visible(told)}", file=sys.stderr)
    if failed:
        raise typer.Exit(1)


def known_domains(metadata: dict[str, Any]) -> dict[str, Any] | None:
    """Domains of the fit and their sizes; free metadata may hold anything there."""
    found = metadata.get("domains")
    if isinstance(found, list):
        found = {str(name): "?" for name in found}
    return found if isinstance(found, dict) else None


def known_sources(metadata: dict[str, Any], rows: Any) -> list[str]:
    """The domains the classifier learned from: of the calibrator, or of the rows."""
    from coolhead.experiment.training_record import trained_sources

    found = trained_sources({"head": metadata}) or trained_sources(rows.metadata)
    return list(found or ())


def _print_lines(lines: list[Any]) -> None:
    from coolhead.cli.terminal import in_percent, print_table

    columns = ("domain", "rows", "accuracy %", "ECE before %", "ECE after %")
    columns += ("change", "noise", "NLL before", "NLL after", "seen as")
    print_table(
        columns,
        [
            (
                line.domain,
                str(line.n_rows),
                f"{100 * line.accuracy:.1f}",
                in_percent(line.ece_before),
                in_percent(line.ece_after),
                in_percent(line.ece_change),
                f"{100 * line.ece_noise:.1f}",
                f"{line.nll_before:.3f}",
                f"{line.nll_after:.3f}",
                line.role,
            )
            for line in lines
        ],
    )
    worse = [line.domain for line in lines if line.ece_change.low > 0]
    if worse:
        print(f"calibration makes the ECE worse in: {visible(', '.join(worse))}")
