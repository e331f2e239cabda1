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
from coolhead.cli.terminal import InputKind, InputOption, JsonOption

if TYPE_CHECKING:
    from coolhead.archive import DomainArchive


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
    source: Annotated[
        str | None,
        typer.Option(
            help="Domains the classifier was trained on, as in a,b: held-out rows of "
            "the same file."
        ),
    ] = None,
    reference: Annotated[
        Path | None,
        typer.Option(help="File with features of rows the classifier was trained on."),
    ] = None,
    scores: InputOption = InputKind.LOGITS,
    clusters: ClustersOption = 8,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Fit a calibrator on labelled predictions of one or more domains."""
    from coolhead.files import check_input, check_output

    inputs = [path for path in (predictions, reference) if path is not None]
    for path in inputs:
        check_input(path)
    check_output(out, inputs=inputs, endings=(".skops",))
    import numpy as np

    from coolhead.archive import load_archive
    from coolhead.calibrators.base import TemperatureCalibrator
    from coolhead.calibrators.data import CalibrationData, fit_with
    from coolhead.calibrators.select.stacking import warn_of_harm
    from coolhead.cli.methods import build_method, is_outside
    from coolhead.cli.terminal import plain_warnings, print_json, print_pairs
    from coolhead.new_domain.evidence import gather_evidence
    from coolhead.persist import save_calibrator
    from coolhead.plugins import full_name

    calibrator = build_method(method, clusters, seed)
    sources = _sources(calibrator, split_names(source))
    wanted = split_names(calibrate_on)
    kind = str(scores or InputKind.LOGITS)
    with plain_warnings():
        domains = None if wanted is None else list(dict.fromkeys([*wanted, *sources]))
        rows = load_archive(predictions, input=kind, labelled=True, domains=domains)
        data = CalibrationData.of(
            np.asarray(rows.logits),
            np.asarray(rows.labels),
            features=rows.features,
            sample_domain=rows.domains,
            source_domain=sources or None,
            reference_features=_reference(calibrator, reference),
        )
        fit_with(calibrator, data)
        if isinstance(calibrator, TemperatureCalibrator) and not data.target:
            # What left-out domains tell: `coolhead expect` answers with it.
            known = calibrator.evidence_ = gather_evidence(calibrator, data)
            if not hasattr(calibrator, "harmed_"):
                # Those that leave domains out themselves have said so in `fit`.
                warn_of_harm(known.domains, known.loss_changes)
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


def _sources(calibrator: Any, names: list[str] | None) -> list[str]:
    """The source domains, refused for methods that could not tell them apart."""
    if names and "source" not in calibrator.takes:
        name = type(calibrator).__name__
        raise typer.BadParameter(f"{name} treats all domains alike: leave --source out")
    return names or []


def _reference(calibrator: Any, path: Path | None) -> Any:
    """Features of training rows, for methods that know what to do with them."""
    from coolhead.archive import load_archive

    if path is None:
        return None
    if "reference" not in calibrator.takes:
        name = type(calibrator).__name__
        raise typer.BadParameter(
            f"{name} does not look at training rows: leave --reference out"
        )
    features = load_archive(path).features
    if features is None:
        raise ValueError(f"{path} has no features; wanted those of training rows")
    return features


def split_names(text: str | None, kind: str = "domain") -> list[str] | None:
    """The names in 'a,b', or None; `kind` says what they are names of."""
    if text is None:
        return None
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise typer.BadParameter(f"{text!r} names no {kind}; wanted names as in a,b")
    return names


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
