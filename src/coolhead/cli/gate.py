"""Conditions under which an evaluation fails, and a summary that CI systems read."""

import math
import operator
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import typer

from coolhead.cli.terminal import visible

# What can be asked, and where it stands in a line of the evaluation.
SCORES = {
    "ece": "ece_after",
    "ece_before": "ece_before",
    "ece_change": "ece_change",
    "nll": "nll_after",
    "nll_before": "nll_before",
    "accuracy": "accuracy",
    "confidence": "confidence",
}
SIGNS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
FORM = re.compile(r"\s*(\w+)(?:\.(low|high))?\s*(>=|<=|>|<)\s*(\S+)\s*")


class Condition(NamedTuple):
    """One --fail-if: a score, perhaps an end of its interval, a sign and a limit."""

    text: str
    score: str
    end: str
    sign: str
    limit: float

    def value(self, line: Any) -> float:
        """The score that is looked at, of one domain."""
        found = getattr(line, SCORES[self.score])
        return float(getattr(found, self.end, found))

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
    """As in "ece > 0.05"; "ece.high > 0.05" is the upper end of its interval."""
    from coolhead.suggest import suggest

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
    return Condition(text.strip(), score, end, found[3], limit)


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
    from coolhead.files import atomic_path

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
            told = f"{verdict.condition}: found {verdict.value:.6g}"
            ElementTree.SubElement(case, "failure", {"message": told})
    with atomic_path(path) as temporary:
        ElementTree.ElementTree(suite).write(
            temporary, encoding="utf-8", xml_declaration=True
        )
