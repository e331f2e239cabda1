"""Conditions under which an evaluation fails, and a summary that CI systems read."""

import math
import operator
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple
from xml.etree import ElementTree

import typer

from coolhead.cli.apply import CalibratorArgument
from coolhead.cli.terminal import (
    BinsOption,
    ClassOption,
    DrawsOption,
    InputOption,
    JsonOption,
    visible,
)

# The scores of a condition: field of `DomainScores`, lowest and highest possible value.
SCORES = {
    "ece": ("ece_after", 0.0, 1.0),
    "ece_before": ("ece_before", 0.0, 1.0),
    "ece_change": ("ece_change", -1.0, 1.0),
    "classwise": ("classwise_after", 0.0, 1.0),
    "class_ece": ("class_after", 0.0, 1.0),
    "nll": ("nll_after", 0.0, math.inf),
    "nll_before": ("nll_before", 0.0, math.inf),
    "accuracy": ("accuracy", 0.0, 1.0),
    "confidence": ("confidence", 0.0, 1.0),
}
SIGNS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
FORM = re.compile(r"\s*(\w+)(?:\.(low|high))?\s*(>=|<=|>|<)\s*(\S+?)\s*(%?)\s*")


class Condition(NamedTuple):
    """One --fail-if: a score, perhaps an end of its interval, a sign and a limit."""

    text: str
    score: str
    end: str
    sign: str
    limit: float

    def value(self, line: Any) -> float:
        """The score that is looked at, of one domain."""
        found = getattr(line, SCORES[self.score][0])
        return math.nan if found is None else float(getattr(found, self.end, found))

    def fails(self, line: Any) -> bool:
        """Whether this domain fails; a score that is no number does."""
        value = self.value(line)
        return value != value or SIGNS[self.sign](value, self.limit)


class Verdict(NamedTuple):
    """What became of one condition in one domain."""

    domain: str
    condition: str
    value: float
    failed: bool


def read_condition(text: str) -> Condition:
    """Parse "ece > 0.05", "ece > 5%" or "ece.high > 0.05", the end of an interval.

    Parameters
    ----------
    text : str
        The argument of --fail-if.

    Returns
    -------
    Condition
        With the limit of a share between 0 and 1, also where it is given in per cent.

    Raises
    ------
    typer.BadParameter
        If `text` has another form, or a limit that no value of the score can have.
    """
    from coolhead.plugins import suggest

    found = FORM.fullmatch(text)
    try:
        limit = float(found[4]) if found else None
    except ValueError:
        limit = None
    # No score is above or below NaN: such a gate would never close.
    if found is None or limit is None or not math.isfinite(limit):
        raise typer.BadParameter(
            f"{text!r} is no condition; wanted one as in 'ece > 0.05'",
            param_hint="--fail-if",
        )
    score, end = found[1], found[2] or "estimate"
    if score not in SCORES:
        raise typer.BadParameter(
            f"{score!r} is no score{suggest(score, SCORES)}", param_hint="--fail-if"
        )
    if found[2] and not score.startswith("ece"):
        raise typer.BadParameter(
            f"{score!r} has no interval; wanted {score} alone", param_hint="--fail-if"
        )
    limit = limit / 100 if found[5] else limit
    _check_limit(score, found[3], limit, found[4] + found[5])
    return Condition(text.strip(), score, end, found[3], limit)


def _check_limit(score: str, sign: str, limit: float, written: str) -> None:
    """Refuse a limit in the wrong unit, and a condition that no value can meet."""
    _, lowest, highest = SCORES[score]
    share = math.isfinite(highest)
    impossible = (sign, limit) in ((">", highest), ("<", lowest))
    percent = written.endswith("%")
    if lowest <= limit <= highest and not impossible and (share or not percent):
        return
    wanted = "nats per row as a plain number, 0 or more, as in 0.7"
    if share:
        wanted = f"a share from {lowest:g} to {highest:g}, as in 0.05 or 5%"
    if impossible:
        wanted += f"; {score} is never {sign} {limit:g}"
    raise typer.BadParameter(
        f"the limit of {score} is {written}; wanted {wanted}", param_hint="--fail-if"
    )


def judge(conditions: Sequence[Condition], lines: Sequence[Any]) -> list[Verdict]:
    """Every condition in every domain."""
    return [
        Verdict(
            line.domain, condition.text, condition.value(line), condition.fails(line)
        )
        for line in lines
        for condition in conditions
    ]


def write_junit(verdicts: Sequence[Verdict], path: Path) -> None:
    """One test case for each verdict, in the XML that CI systems show."""
    from coolhead.io.files import atomic_path

    failed = sum(verdict.failed for verdict in verdicts)
    counts = {"tests": str(len(verdicts)), "failures": str(failed)}
    suite = ElementTree.Element("testsuite", {"name": "coolhead evaluate", **counts})
    for verdict in verdicts:
        names = {
            "classname": visible(verdict.domain),
            "name": f"not {verdict.condition}",
        }
        case = ElementTree.SubElement(suite, "testcase", names)
        if verdict.failed:
            text = f"{verdict.condition}: found {verdict.value:.6g}"
            ElementTree.SubElement(case, "failure", {"message": text})
    with atomic_path(path) as temporary:
        ElementTree.ElementTree(suite).write(
            temporary, encoding="utf-8", xml_declaration=True
        )


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
    bins: BinsOption = None,
    class_name: ClassOption = None,
    draws: DrawsOption = 1000,
    fail_if: Annotated[
        list[str] | None,
        typer.Option(help="Exit with 1 if so in any domain: 'ece > 5%'."),
    ] = None,
    junit: Annotated[
        Path | None, typer.Option(help="Write what --fail-if found as JUnit XML.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Print accuracy, calibration error and log loss of every domain."""
    from coolhead.io.files import check_inputs, check_output

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
        raise typer.BadParameter("--junit has nothing to report without --fail-if")
    if class_name is None and any(each.score == "class_ece" for each in conditions):
        raise typer.BadParameter("--fail-if class_ece needs a class: --class NAME")
    from coolhead.apply import check_columns
    from coolhead.cli.apply import open_both
    from coolhead.cli.fit import split_names
    from coolhead.cli.terminal import plain_warnings, print_json
    from coolhead.evaluate import evaluate_domains
    from coolhead.io.reading import load_archive
    from coolhead.metrics.bins import N_BINS

    fitted, metadata, opened, kind = open_both(calibrator, predictions, scores)
    metadata["domains"] = known_domains(metadata)
    names = fitted.class_names_
    check_columns(fitted, opened)
    with plain_warnings():
        rows = load_archive(predictions, input=kind, labelled=True, class_names=names)
        lines = evaluate_domains(
            fitted,
            rows,
            fitted_on=metadata["domains"],
            source=split_names(source) or known_sources(metadata, rows),
            n_bins=bins or N_BINS,
            class_name=class_name,
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
        text = f"{verdict.domain}: {verdict.condition} ({verdict.value:.4g})"
        print(f"coolhead: failed in {visible(text)}", file=sys.stderr)
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
    from coolhead.evaluate import trained_sources

    found = trained_sources({"head": metadata}) or trained_sources(rows.metadata)
    return list(found or ())


def _print_lines(lines: list[Any]) -> None:
    from coolhead.cli.terminal import in_percent, print_table, print_text
    from coolhead.numerics.weights import infinite_loss_message

    named = any(line.class_after is not None for line in lines)
    rows = [
        {
            "domain": line.domain,
            "rows": str(line.n_rows),
            "accuracy": f"{100 * line.accuracy:.1f}",
            "ECE before": in_percent(line.ece_before),
            "ECE after": in_percent(line.ece_after),
            "change": in_percent(line.ece_change),
            "by chance": f"{100 * line.ece_noise:.1f}",
            "class-wise": _both(line.classwise_before, line.classwise_after),
            **(
                {"the class": _both(line.class_before, line.class_after)}
                if named
                else {}
            ),
            "NLL before": f"{line.nll_before:.3f}",
            "NLL after": f"{line.nll_after:.3f}",
            "role": line.role,
        }
        for line in lines
    ]
    print_table(
        list(rows[0]),
        [list(row.values()) for row in rows],
        "Accuracy and calibration error in % [95 % interval]",
        extra=("NLL before", "NLL after", "class-wise", "by chance", "change", "role"),
    )
    total = lines[-1]
    if total.n_masked:
        print_text(infinite_loss_message(total.n_masked, total.n_rows))
    worse = [line.domain for line in lines if line.ece_change.low > 0]
    if worse:
        print_text(f"calibration makes the ECE worse in: {', '.join(worse)}")


def _both(before: float, after: float) -> str:
    return f"{100 * before:.1f} to {100 * after:.1f}"
