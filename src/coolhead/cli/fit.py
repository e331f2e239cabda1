"""`coolhead fit`, and the options that it shares with `coolhead compare`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coolhead.cli.terminal import InputOption, JsonOption

if TYPE_CHECKING:
    from coolhead.io.archive import DomainArchive

DEFAULT_METHOD = "auto"
# Compared when nothing else is asked for: the paper's, the nearest rival, the default.
FIRST = ("set-level", "nearest-cluster", "regression", "ensemble", "md-ts", "auto")


def method_names() -> list[str]:
    """Methods fitted on calibration domains and nothing else, the paper's first."""
    from coolhead.methods import METHODS

    fit_only = [
        name
        for name, method in METHODS.items()
        if "calibration" in method.rows
        and not name.endswith("+source")
        and not method.sees_target
    ]
    return sorted(fit_only, key=lambda name: (name not in FIRST, fit_only.index(name)))


def build_method(name: str, n_clusters: int, random_state: int) -> Any:
    """A calibrator that is not fitted yet; an unknown name is a mistake of usage."""
    from coolhead.methods import find_method
    from coolhead.plugins import installed_methods, is_plugin, suggest

    known = [*method_names(), *installed_methods()]
    if name not in known and not is_plugin(name):
        hint = suggest(name, known)
        raise typer.BadParameter(f"{name!r} is no method{hint}", param_hint="--method")
    return find_method(name).build(n_clusters=n_clusters, random_state=random_state)


def _complete_method(incomplete: str) -> list[str]:
    return [name for name in method_names() if name.startswith(incomplete)]


MethodOption = Annotated[
    str,
    typer.Option(
        help="Name of the method, such as auto, ensemble or set-level; or "
        "python:MODULE:CLASS, a calibrator of your own.",
        autocompletion=_complete_method,
    ),
]
ClustersOption = Annotated[
    int, typer.Option(min=1, help="Clusters, for the methods that use them.")
]
SeedOption = Annotated[int, typer.Option(min=0, help="Seed of all random draws.")]

SourceOption = Annotated[
    str | None,
    typer.Option(
        help="Domains the classifier was trained on, as in a,b: held-out rows of "
        "the same file."
    ),
]
ReferenceOption = Annotated[
    Path | None,
    typer.Option(help="File with features of rows the classifier was trained on."),
]


def split_names(text: str | None, kind: str = "domain") -> list[str] | None:
    """The names in 'a,b', or None; `kind` says what they are names of."""
    if text is None:
        return None
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise typer.BadParameter(f"{text!r} names no {kind}; wanted names as in a,b")
    return names


def find_sources(calibrators: Sequence[Any], source: str | None) -> list[str]:
    """Return the source domains; refuse them where no method takes them."""
    names = split_names(source)
    if names and not any("source" in method.takes for method in calibrators):
        raise typer.BadParameter(
            f"{_classes(calibrators)} treats all domains alike: leave --source out"
        )
    return names or []


def read_reference(calibrators: Sequence[Any], path: Path | None) -> Any:
    """Read features of training rows; refuse them where no method takes them."""
    from coolhead.io.reading import load_archive

    if path is None:
        return None
    if not any("reference" in method.takes for method in calibrators):
        raise typer.BadParameter(
            f"{_classes(calibrators)} does not look at training rows: "
            "leave --reference out"
        )
    features = load_archive(path).features
    if features is None:
        raise ValueError(f"{path} has no features; wanted those of training rows")
    return features


def _classes(calibrators: Sequence[Any]) -> str:
    names = list(dict.fromkeys(type(method).__name__ for method in calibrators))
    return f"{'each of ' * (len(names) > 1)}{', '.join(names)}"


def load_labelled(
    predictions: Path, kind: str, domains: str | None, sources: Sequence[str]
) -> "DomainArchive":
    """The labelled rows of these domains, as in a,b, and of the source."""
    from coolhead.io.reading import load_archive

    wanted = split_names(domains)
    if wanted is not None:
        wanted = list(dict.fromkeys([*wanted, *sources]))
    return load_archive(predictions, input=kind, labelled=True, domains=wanted)


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
    scores: InputOption = None,
    clusters: ClustersOption = 8,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Fit a calibrator on labelled predictions of one or more domains."""
    from coolhead.io.files import check_inputs, check_output

    inputs = check_inputs(predictions, reference)
    check_output(out, inputs=inputs, endings=(".skops",))
    from dataclasses import replace

    import numpy as np

    from coolhead.calibrators.data import CalibrationData, fit_with
    from coolhead.calibrators.evidence import keep_evidence
    from coolhead.cli.apply import wanted_input
    from coolhead.cli.terminal import plain_warnings, print_json, print_pairs
    from coolhead.io.calibrators import save_calibrator
    from coolhead.io.reading import open_predictions
    from coolhead.plugins import full_name

    calibrator = build_method(method, clusters, seed)
    sources = find_sources([calibrator], source)
    kind = wanted_input(scores, {}, open_predictions(predictions))
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
        fit_with(calibrator, replace(data, classes=rows.class_names))
        keep_evidence(calibrator, data)
        metadata: dict[str, Any] = {"method": method, "input": kind}
        metadata |= {"file": predictions.name, "source": sources}
        metadata |= _about(calibrator, rows)
        # A method of the user's own is trusted here, and named again to be loaded.
        own = [] if method in method_names() else [full_name(type(calibrator))]
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


def _about(calibrator: Any, rows: "DomainArchive") -> dict[str, Any]:
    """What the calibrator was fitted on, for the header of its file."""
    from datetime import UTC, datetime

    from coolhead.monitor import DriftMonitor
    from coolhead.numerics.classes import name_labels

    about = {
        "domains": rows.domain_sizes(),
        "n_rows": len(rows),
        "class_names": rows.class_names,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    if hasattr(calibrator, "evidence_"):
        monitor = DriftMonitor.for_calibrator(calibrator)
    else:
        monitor = DriftMonitor.for_calibrator(
            calibrator,
            rows.features if calibrator.uses_features else None,
            rows.domains,
            logits=rows.logits,
            labels=name_labels(rows.labels, getattr(calibrator, "class_names_", None)),
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
        texts = [str(text) for text in status]
        outcome["status"] = list(dict.fromkeys(texts)) if distinct else texts
    if hasattr(calibrator, "n_fallbacks_"):
        outcome["fallbacks"] = calibrator.n_fallbacks_
    return outcome
