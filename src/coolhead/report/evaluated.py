"""The report of one calibrator on labelled predictions."""

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
    note_masked,
    package_versions,
    point_scores,
    schema_of,
)
from coolhead.report.summarise import ReportData
from coolhead.report.tables import Table, TableBuilder

# Keys of a calibrator's metadata that a reader understands, and their names here.
SHOWN_METADATA = {"method": "Method", "file": "Fitted with", "created": "Fitted at"}
BIAS_NOTE = (
    "* On few rows the ECE is too high by chance. Intervals are corrected for this, "
    "estimates are not, so an estimate may lie outside its own interval."
)


def write_evaluation_report(
    path: str | Path,
    calibrator: Any,
    archive: DomainArchive,
    lines: Any,
    metadata: dict[str, Any],
    *,
    name: str = "labelled predictions",
) -> Path:
    """Write the report of one calibrator on labelled predictions.

    Parameters
    ----------
    path : str or Path
        File to write.
    calibrator : Calibrator
        The calibrator that was evaluated.
    archive : DomainArchive
        The rows it was evaluated on.
    lines : DomainEvaluation
        Result of `coolhead.evaluate.evaluate_domains`.
    metadata : dict
        What the calibrator's file says about it.
    name : str, default="labelled predictions"
        Name of the evaluated file, for the title.

    Returns
    -------
    path : Path

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
    data = gather_evaluation(calibrator, archive, lines, metadata, name)
    write_text(path, render(data))
    return Path(path)


def gather_evaluation(
    calibrator: Any,
    archive: DomainArchive,
    lines: Any,
    metadata: dict[str, Any],
    name: str,
) -> ReportData:
    """Build the tables of a report; every domain of the predictions is a split."""
    method = _method_name(calibrator, metadata)
    domains = [line for line in lines if line.domain != "all" or len(lines) == 1]
    rows: dict[str, list[dict[str, Any]]] = {table: [] for table in TABLES}
    for line in domains:
        key = _key(line, metadata)
        result = _score(lines.scored[line.domain], line, method)
        for table, found in result.tables.items():
            rows[table] += [key | row for row in found]
    return ReportData(
        title=f"Calibration of {name}",
        frames={n: pl.DataFrame(r, schema=schema_of(n)) for n, r in rows.items()},
        tables=[_table(lines)],
        planned=(BEFORE, method),
        facts=_facts(calibrator, archive, metadata, name, lines[0].n_bins),
        noun="domain",
        judged=_unseen(domains),
    )


def _unseen(lines: list[Any]) -> tuple[str, ...] | None:
    """Return the domains that neither classifier nor calibrator has seen, if any."""
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
        BEFORE: {"ece_mean": line.ece_before.estimate},
        method: {
            "ece_mean": line.ece_after.estimate,
            "gain": (before.rows.brier - after.rows.brier).mean(),
            "ece_vs_uncalibrated": line.ece_change.estimate,
            "ece_vs_uncalibrated_low": line.ece_change.low,
            "ece_vs_uncalibrated_high": line.ece_change.high,
        },
    }
    for (name, more), rows in zip(own.items(), scored, strict=True):
        numbers = point_scores(rows, line.n_bins, line.n_rows) | more
        for metric, value in numbers.items():
            result.add("results", method=name, metric=metric, value=float(value))
        add_curves(name, rows, line.n_bins, result)
    return result


def _key(line: Any, metadata: dict[str, Any]) -> dict[str, Any]:
    """Return the key columns of a domain."""
    # Not "calibration": it would read as if that were the domain's name.
    role = {"source": " (source)", "calibration": " (seen)"}.get(line.role, "")
    return {
        "experiment": "evaluation",
        "classifier": "given",
        "split": f"{line.domain}{role}",
        "source": "",
        "calibration": "+".join(_fitted_on(metadata)),
        "target": line.domain,
        "seed": 0,
    }


def _table(lines: Any) -> Table:
    cells, outside = TableBuilder(), False
    for line in lines:
        name = line.domain
        for column, found in (
            ("ECE before", line.ece_before),
            ("ECE after", line.ece_after),
            ("change", line.ece_change),
        ):
            beyond = not found.low <= found.estimate <= found.high
            outside |= beyond
            limits = {"low": 100 * found.low, "high": 100 * found.high}
            mark = " *" if beyond else ""
            cells.add(name, column, 100 * found.estimate, **limits, mark=mark)
        cells.add(name, "noise", 100 * line.ece_noise)
        cells.add(name, "accuracy", 100 * line.accuracy)
        for column, pair, unit in (
            ("class-wise ECE", (line.classwise_before, line.classwise_after), 100),
            ("ECE of the class", (line.class_before, line.class_after), 100),
            ("NLL", (line.nll_before, line.nll_after), 1),
        ):
            for when, number in zip(("before", "after"), pair, strict=True):
                if number is not None:
                    cells.add(name, f"{column} {when}", unit * number)
        cells.add(name, "rows", float(line.n_rows))
        cells.add(name, "seen as", None, mark=line.role)
    notes = (
        "ECE and accuracy in per cent, 95 % bootstrap intervals; the change is paired. "
        "Noise: the ECE a perfectly calibrated classifier shows on as many rows.",
        *((BIAS_NOTE,) if outside else ()),
    )
    title = "Scores by domain"
    return Table("domains", title, cells.frame(), notes, "domain", whole=("rows",))


def _fitted_on(metadata: dict[str, Any]) -> dict[str, Any]:
    """Return {domain: rows} of the fit; a third-party file may hold anything there."""
    found = metadata.get("domains")
    return found if isinstance(found, dict) else {}


def _facts(
    calibrator: Any,
    archive: DomainArchive,
    metadata: dict[str, Any],
    name: str,
    n_bins: int,
) -> dict[str, str]:
    fitted = ", ".join(f"{n} ({c})" for n, c in _fitted_on(metadata).items())
    sizes = ", ".join(f"{n} ({c})" for n, c in archive.domain_sizes().items())
    source = metadata.get("source")
    program = Path(sys.argv[0]).name.replace("__main__.py", "coolhead")
    known = {
        text: str(metadata[key])
        for key, text in SHOWN_METADATA.items()
        if metadata.get(key)
    }
    if isinstance(source, list) and source:
        known["Source domains"] = ", ".join(map(str, source))
    return {
        "Command": " ".join([program, *sys.argv[1:]]),
        "Evaluated": f"{name}: {sizes}",
        "Calibrator": type(calibrator).__name__,
        "Fitted on": fitted or "not known",
        **known,
        "Evaluation": f"ECE with {n_bins} equal-width bins, all rows",
        "Versions": ", ".join(f"{n} {v}" for n, v in package_versions().items()),
        "Machine": describe_machine(),
    }
