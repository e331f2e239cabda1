"""Fit a calibrator on saved predictions."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coolhead.cli.methods import (
    DEFAULT_METHOD,
    ClustersOption,
    MethodOption,
    SeedOption,
)
from coolhead.cli.source import (
    ReferenceOption,
    SourceOption,
    find_sources,
    load_labelled,
    read_reference,
)
from coolhead.cli.terminal import InputKind, InputOption, JsonOption

if TYPE_CHECKING:
    from coolhead.archive import DomainArchive
    from coolhead.calibrators.data import CalibrationData


def fit(
    predictions: Annotated[
        Path, typer.Argument(help="Labelled predictions: npz, Parquet, CSV, ...")
    ],
    out: Annotated[Path, typer.Option(help="File for the calibrator, .skops.")],
    method: MethodOption = DEFAULT_METHOD,
    calibrate_on: Annotated[
        str | None,
        typer.Option(help="Domains to use, as in a,b; all labelled ones by default."),
    ] = None,
    source: SourceOption = None,
    reference: ReferenceOption = None,
    scores: InputOption = InputKind.LOGITS,
    clusters: ClustersOption = 8,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Fit a calibrator on labelled predictions of one or more domains."""
    from coolhead.files import check_inputs, check_output

    inputs = check_inputs(predictions, reference)
    check_output(out, inputs=inputs, endings=(".skops",))
    import numpy as np

    from coolhead.calibrators.data import CalibrationData, fit_with
    from coolhead.cli.methods import build_method, is_outside
    from coolhead.cli.terminal import plain_warnings, print_json, print_pairs
    from coolhead.persist import save_calibrator
    from coolhead.plugins import full_name

    calibrator = build_method(method, clusters, seed)
    sources = find_sources([calibrator], source)
    kind = str(scores or InputKind.LOGITS)
    with plain_warnings():
        rows = load_labelled(predictions, kind, calibrate_on, sources)
        data = CalibrationData.of(
            np.asarray(rows.logits),
            np.asarray(rows.labels),
            features=rows.features,
            sample_domain=rows.domains,
            source_domain=sources or None,
            reference_features=read_reference([calibrator], reference),
        )
        fit_with(calibrator, data)
        _leave_out(calibrator, data)
        named: dict[str, Any] = {
            "method": method,
            "input": kind,
            "file": predictions.name,
            "source": sources,
        }
        metadata = named | _about(calibrator, rows)
        # Whoever names a method of their own trusts it; to read it, they name it again.
        own = [full_name(type(calibrator))] if is_outside(method) else []
        save_calibrator(calibrator, out, metadata=metadata, trusted=own)
    summary = {"out": str(out), "bytes": out.stat().st_size}
    summary |= {**metadata, **_outcome(calibrator)}
    if as_json:
        print_json(summary)
        return
    domains = ", ".join(f"{name} ({n})" for name, n in metadata["domains"].items())
    print_pairs(
        {
            "method": f"{method} ({type(calibrator).__name__})",
            "fitted on": f"{metadata['n_rows']} rows of {domains}",
            **_outcome(calibrator, distinct=True),
            "written to": f"{out} ({summary['bytes'] / 1000:.0f} kB)",
        }
    )


def _leave_out(calibrator: Any, data: "CalibrationData") -> None:
    """Ask left-out domains, each once: for `coolhead expect`, and for a warning."""
    from coolhead.calibrators.base import TemperatureCalibrator
    from coolhead.calibrators.left_out import warn_where_worse
    from coolhead.calibrators.select.stacking import warn_of_harm
    from coolhead.new_domain.evidence import gather_evidence

    if not isinstance(calibrator, TemperatureCalibrator):
        warn_where_worse(calibrator, data)
        return
    known = calibrator.evidence_ = gather_evidence(calibrator, data)
    if not hasattr(calibrator, "harmed_"):
        # Those that leave domains out themselves have said so in `fit`.
        warn_of_harm(known.domains, known.loss_changes)


def _about(calibrator: Any, rows: "DomainArchive") -> dict[str, Any]:
    """What the calibrator was fitted on, for the header of its file."""
    from datetime import UTC, datetime

    from coolhead.monitor import DriftMonitor

    about = {
        "domains": rows.domain_sizes(),
        "n_rows": len(rows),
        "class_names": rows.class_names,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    monitor = DriftMonitor.for_calibrator(
        calibrator,
        rows.features if calibrator.uses_features else None,
        rows.domains,
        logits=rows.logits,
        labels=rows.labels,
    )
    # What the calibration domains show: `apply` compares a new file with it.
    about["expected"] = monitor.expected.to_dict()
    return about


def _outcome(calibrator: Any, *, distinct: bool = False) -> dict[str, Any]:
    """Temperature and status, as far as the method has them."""
    import numpy as np

    outcome = {}
    if hasattr(calibrator, "temperature_"):
        outcome["temperature"] = calibrator.temperature_
    if hasattr(calibrator, "status_"):
        status = np.atleast_1d(calibrator.status_)
        told = [str(text) for text in status]
        outcome["status"] = list(dict.fromkeys(told)) if distinct else told
    if hasattr(calibrator, "n_fallbacks_"):
        outcome["fallbacks"] = calibrator.n_fallbacks_
    return outcome
