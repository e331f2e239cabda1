"""One calibrator on labelled predictions, told in the tables of a run."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from coolhead.io.archive import DomainArchive
from coolhead.io.files import write_text
from coolhead.methods import known_method
from coolhead.metrics.scored import ScoredRows
from coolhead.report.answer import BEFORE
from coolhead.report.page import render
from coolhead.report.results import (
    TABLES,
    CellResult,
    add_curves,
    describe_machine,
    empty_table,
    note_masked,
    package_versions,
    point_scores,
    schema_of,
)
from coolhead.report.summarise import ReportData
from coolhead.report.tables import Table, TableBuilder


def write_evaluation_report(
    path: str | Path,
    calibrator: Any,
    archive: DomainArchive,
    lines: Any,
    metadata: dict[str, Any],
) -> Path:
    """Write the report of one calibrator on labelled predictions.

    Parameters
    ----------
    path : file to write.
    calibrator, archive : what was evaluated, and on which rows.
    lines : what `coolhead.evaluate.evaluate_domains` found.
    metadata : what the calibrator's file says about it.

    Examples
    --------
    >>> import coolhead as ch
    >>> import tempfile
    >>> from coolhead.evaluate import evaluate_domains
    >>> data = ch.datasets.simulate_domains()
    >>> seen, unseen = data.select("site-0", "site-1", "site-2"), data.select("site-3")
    >>> cal = ch.TemperatureScaling().fit(seen.logits, seen.labels)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lines = evaluate_domains(cal, unseen, n_draws=50)
    ...     page = f"{folder}/page.html"
    ...     ch.report.write_evaluation_report(page, cal, unseen, lines, {}).name
    ...
    'page.html'
    """
    page = render(gather_evaluation(calibrator, archive, lines, metadata))
    write_text(path, page)
    return Path(path)


def gather_evaluation(
    calibrator: Any, archive: DomainArchive, lines: Any, metadata: dict[str, Any]
) -> ReportData:
    """The tables of a report; every domain of the predictions stands for a split."""
    method = _method_name(calibrator, metadata)
    domains = [line for line in lines if line.domain != "all" or len(lines) == 1]
    frames: dict[str, list[pl.DataFrame]] = {name: [] for name in TABLES}
    for line in domains:
        result = _score(lines.scored[line.domain], line, method)
        for name, rows in result.tables.items():
            if rows:
                frames[name].append(_keyed(name, rows, line, metadata))
    return ReportData(
        title=f"Calibration of {metadata.get('file', 'saved predictions')}",
        frames={n: pl.concat(f) if f else empty_table(n) for n, f in frames.items()},
        tables=[_table(lines)],
        planned=(BEFORE, method),
        facts=_facts(calibrator, archive, metadata, lines[0].n_bins),
        noun="domain",
        judged=_unseen(domains),
    )


def _unseen(lines: list[Any]) -> tuple[str, ...] | None:
    """Domains the answer is about: not learned from by anybody, where there are any."""
    names = tuple(line.domain for line in lines if line.seen is False)
    return names if 0 < len(names) < len(lines) else None


def _method_name(calibrator: Any, metadata: dict[str, Any]) -> str:
    """The name it was fitted by; an oracle's name would count as seeing the target."""
    name = str(metadata.get("method", ""))
    method = known_method(name)
    fits = method.maker is not None and not method.sees_target
    return name if fits else type(calibrator).__name__


def _score(scored: Sequence[ScoredRows], line: Any, method: str) -> CellResult:
    result, (before, after) = CellResult(), scored
    note_masked(before, result)
    own = {
        BEFORE: {"ece_mean": line.ece_before.estimate, "gain": 0.0},
        method: {
            "ece_mean": line.ece_after.estimate,
            "gain": (before.rows.brier - after.rows.brier).mean(),
            "ece_vs_uncalibrated": line.ece_change.estimate,
            "ece_vs_uncalibrated_low": line.ece_change.low,
            "ece_vs_uncalibrated_high": line.ece_change.high,
        },
    }
    if line.class_after is not None:
        own[BEFORE]["ece_class"] = line.class_before
        own[method]["ece_class"] = line.class_after
    for (name, more), rows in zip(own.items(), scored, strict=True):
        numbers = point_scores(rows, line.n_bins, line.n_rows) | more
        for metric, value in numbers.items():
            result.add("results", method=name, metric=metric, value=float(value))
        add_curves(name, rows, line.n_bins, result)
    return result


def _keyed(
    name: str, rows: list[dict[str, Any]], line: Any, metadata: dict[str, Any]
) -> pl.DataFrame:
    fitted_on = "+".join(_fitted_on(metadata))
    # Not "calibration": it would read as if that were the domain's name.
    role = {"source": " (source)", "calibration": " (seen)"}.get(line.role, "")
    split = f"{line.domain}{role}"
    key = {"experiment": "evaluation", "classifier": "given", "split": split}
    key |= {"source": "", "calibration": fitted_on, "target": line.domain, "seed": 0}
    return pl.DataFrame([key | row for row in rows], schema=schema_of(name))


def _table(lines: Any) -> Table:
    cells = TableBuilder()
    for line in lines:
        name = line.domain
        for column, value in (
            ("ECE before", line.ece_before),
            ("ECE after", line.ece_after),
            ("change", line.ece_change),
        ):
            limits = {"low": 100 * value.low, "high": 100 * value.high}
            cells.add(name, column, 100 * value.estimate, **limits)
        cells.add(name, "noise", 100 * line.ece_noise)
        cells.add(name, "accuracy", 100 * line.accuracy)
        cells.add(name, "NLL before", line.nll_before)
        cells.add(name, "NLL after", line.nll_after)
        cells.add(name, "rows", float(line.n_rows))
        cells.add(name, "seen as", None, mark=line.role)
    notes = (
        "ECE and accuracy in per cent, 95 % bootstrap intervals; the change is paired. "
        "Noise: the ECE a perfectly calibrated classifier shows on as many rows.",
    )
    return Table("domains", "Scores by domain", cells.frame(), notes, "domain")


def _fitted_on(metadata: dict[str, Any]) -> dict[str, Any]:
    """{domain: rows} of the fit; a file of somebody else may hold anything there."""
    found = metadata.get("domains")
    return found if isinstance(found, dict) else {}


def _facts(
    calibrator: Any, archive: DomainArchive, metadata: dict[str, Any], n_bins: int
) -> dict[str, str]:
    said = {key: value for key, value in metadata.items() if key != "domains"}
    fitted = ", ".join(f"{n} ({c})" for n, c in _fitted_on(metadata).items())
    sizes = ", ".join(f"{n} ({c})" for n, c in archive.domain_sizes().items())
    return {
        "Command": " ".join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        "Calibrator": type(calibrator).__name__,
        "Fitted on": fitted or "not known",
        "Evaluated on": sizes,
        **{str(key).replace("_", " "): str(value) for key, value in said.items()},
        "Evaluation": f"ECE with {n_bins} equal-width bins, all rows",
        "Versions": ", ".join(f"{n} {v}" for n, v in package_versions().items()),
        "Machine": describe_machine(),
    }
