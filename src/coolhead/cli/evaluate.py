"""`coolhead evaluate`: scores of every domain, and conditions under which it fails."""

import math
import operator
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple, NoReturn
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
FORM = re.compile(
    r"\s*(\w+)(?:\[(.+)\])?(?:\.(low|high))?\s*(>=|<=|>|<)\s*(\S+?)\s*(%?)\s*"
)


class Condition(NamedTuple):
    """One --fail-if: a score, perhaps an end of its interval, a sign and a limit.

    A class in brackets, as in "classwise_ece[dies] > 3%", is the one that is scored.
    """

    text: str
    score: str
    end: str
    sign: str
    limit: float
    class_name: str | None = None

    def judge(self, line: Any) -> "GateResult":
        """Compare the score of one domain with the limit; NaN fails."""
        found = getattr(line, SCORES[self.score][0])
        value = math.nan if found is None else float(getattr(found, self.end, found))
        failed = math.isnan(value) or SIGNS[self.sign](value, self.limit)
        return GateResult(line.domain, self.text, value, failed)


class GateResult(NamedTuple):
    """GateResult of one condition in one domain."""

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

    def refuse(reason: str) -> NoReturn:
        raise typer.BadParameter(reason, param_hint="--fail-if")

    found = FORM.fullmatch(text)
    try:
        limit = float(found[5]) if found else math.nan
    except ValueError:
        limit = math.nan
    # No score is above or below NaN: such a gate would never close.
    if found is None or not math.isfinite(limit):
        refuse(f"{text!r} is no condition; wanted one as in 'ece > 0.05'")
    score, class_name, end, sign, _, percent = found.groups()
    if class_name and score == "classwise_ece":
        score = "class_ece"
    if class_name and score != "class_ece":
        refuse(f"{score!r} is not of one class; wanted classwise_ece[{class_name}]")
    if score not in SCORES:
        refuse(f"{score!r} is no score{suggest(score, SCORES)}")
    if end and not score.startswith("ece"):
        refuse(f"{score!r} has no interval; wanted {score} alone")
    _, lowest, highest = SCORES[score]
    limit = limit / 100 if percent else limit
    share = math.isfinite(highest)
    impossible = (sign, limit) in ((">", highest), ("<", lowest))
    wrong_unit = percent and not share
    if wrong_unit or impossible or not lowest <= limit <= highest:
        wanted = "nats per row as a plain number, 0 or more, as in 0.7"
        if share:
            wanted = f"a share from {lowest:g} to {highest:g}, as in 0.05 or 5%"
        if impossible:
            wanted += f"; {score} is never {sign} {limit:g}"
        refuse(f"the limit of {score} is {found[5]}{percent}; wanted {wanted}")
    end = end or "estimate"
    return Condition(text.strip(), score, end, sign, limit, class_name)


def write_junit(verdicts: Sequence[GateResult], path: Path) -> None:
    """Write one test case for each verdict, as XML that CI systems show."""
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
    places = [check_output(each, inputs=inputs) for each in (report, junit) if each]
    if len(set(places)) < len(places):
        raise typer.BadParameter(f"--report and --junit are both {report}; wanted two")
    conditions = [read_condition(text) for text in fail_if or ()]
    if junit is not None and not conditions:
        raise typer.BadParameter("--junit has nothing to report without --fail-if")
    asked = [class_name, *(each.class_name for each in conditions)]
    named = list(dict.fromkeys(name for name in asked if name is not None))
    if len(named) > 1:
        raise typer.BadParameter(
            f"--class and --fail-if name the classes {', '.join(named)}; wanted one"
        )
    class_name = named[0] if named else None
    if class_name is None and any(each.score == "class_ece" for each in conditions):
        raise typer.BadParameter("--fail-if class_ece needs a class: --class NAME")
    from coolhead.apply import check_columns
    from coolhead.cli.apply import open_both
    from coolhead.cli.fit import split_names
    from coolhead.cli.terminal import plain_warnings, print_json, score_settings
    from coolhead.evaluate import evaluate_domains, trained_sources
    from coolhead.io.reading import load_archive

    fitted, metadata, opened, kind = open_both(calibrator, predictions, scores)
    metadata["domains"] = known_domains(metadata)
    names = fitted.class_names_
    check_columns(fitted, opened)
    with plain_warnings():
        rows = load_archive(predictions, input=kind, labelled=True, class_names=names)
        recorded = trained_sources({"head": metadata}) or trained_sources(rows.metadata)
        lines = evaluate_domains(
            fitted,
            rows,
            fitted_on=metadata["domains"],
            source=split_names(source) or recorded or (),
            **score_settings(bins, class_name, draws),
        )
        if report is not None:
            from coolhead.report import write_evaluation_report

            write_evaluation_report(
                report, fitted, rows, lines, metadata, name=predictions.name
            )
    verdicts = [each.judge(line) for line in lines for each in conditions]
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
    """Return the domains of the fit and their sizes; metadata may hold anything."""
    found = metadata.get("domains")
    if isinstance(found, list):
        found = {str(name): "?" for name in found}
    return found if isinstance(found, dict) else None


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
        extra=("role", "change", "by chance", "class-wise", "NLL after", "NLL before"),
    )
    total = lines[-1]
    if total.n_masked:
        print_text(infinite_loss_message(total.n_masked, total.n_rows))
    worse = [line.domain for line in lines if line.ece_change.low > 0]
    if worse:
        print_text(f"calibration makes the ECE worse in: {', '.join(worse)}")


def _both(before: float, after: float) -> str:
    return f"{100 * before:.1f} to {100 * after:.1f}"
