"""MLflow: a calibrated classifier as a `pyfunc` model, its scores and its report.

`import coolhead.mlflow`, then inside `with mlflow.start_run():`. Nothing here imports
mlflow before it is used.
"""

import re
import warnings
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from coolhead.classifier.classifier import CalibratedClassifier
from coolhead.evaluate import DomainScores, evaluate_domains
from coolhead.extras import needs
from coolhead.io.archive import DomainArchive
from coolhead.io.calibrators import load_calibrator, save_calibrator
from coolhead.metrics.bins import Interval
from coolhead.models.reading import innermost, package_of
from coolhead.numerics.classes import check_names, class_positions, class_text

__all__ = ["CalibratedModel", "log_evaluation", "log_model", "metrics_of"]

MODEL_FILE = "model.skops"
UNUSUAL = re.compile(r"[^\w\-. :/]")  # in the name of a metric


class CalibratedModel:
    """The model that `mlflow.pyfunc.load_model` returns: tables in, tables out.

    Examples
    --------
    >>> import coolhead as ch
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.discriminant_analysis import LinearDiscriminantAnalysis as LDA
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ch.CalibratedClassifier(LDA(), ch.TemperatureScaling())
    >>> served = CalibratedModel(model.fit(X, y))
    >>> served.predict(X[:2]).columns.tolist()
    ['prob_0', 'prob_1', 'prob_2', 'predicted', 'confidence']
    """

    def __init__(self, model: CalibratedClassifier):
        self.model = model

    def predict(self, X: Any, params: Any = None) -> Any:
        """Return a pandas frame: `prob_*` of every class, `predicted`, `confidence`."""
        import pandas

        probabilities = self.model.predict_proba(X)
        names = [f"prob_{name}" for name in self.model.classes_]
        frame = pandas.DataFrame(
            probabilities, columns=names, index=getattr(X, "index", None)
        )
        frame["predicted"] = self.model.classes_[probabilities.argmax(axis=1)]
        frame["confidence"] = probabilities.max(axis=1)
        return frame


def log_model(
    model: CalibratedClassifier,
    name: str = "model",
    *,
    trusted: Sequence[str] = (),
    **settings: Any,
) -> Any:
    """Log a fitted `CalibratedClassifier` as a pyfunc model of the active run.

    Parameters
    ----------
    model : CalibratedClassifier
        Fitted. `save_calibrator` writes it as a file that runs no code. The files that
        MLflow adds name the module that reads it: trust them like code.
    name : str, default="model"
        Name of the logged model.
    trusted : sequence of str, default=()
        Types inside the estimator beyond scikit-learn's plain ones, as in
        `save_calibrator`; a refusal lists them.
    **settings : dict
        Further arguments of `mlflow.pyfunc.log_model`, such as `signature`,
        `input_example` or `registered_model_name`.

    Returns
    -------
    ModelInfo
        Of MLflow; ``mlflow.pyfunc.load_model(info.model_uri).predict(X)``.

    Examples
    --------
    Inside ``with mlflow.start_run():`` it is ``log_model(model)``; with the model go
    the packages that it is read with:

    >>> import coolhead as ch
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.discriminant_analysis import LinearDiscriminantAnalysis as LDA
    >>> model = ch.CalibratedClassifier(LDA(), ch.TemperatureScaling())
    >>> model = model.fit(*load_iris(return_X_y=True))
    >>> [line.partition("==")[0] for line in requirements(model)]
    ['coolhead', 'numpy', 'scikit-learn', 'pandas']
    """
    with needs("coolhead.mlflow"):
        import mlflow.pyfunc
    if not isinstance(model, CalibratedClassifier):
        raise TypeError(
            f"model is a {type(model).__name__}; wanted a fitted CalibratedClassifier"
        )
    with TemporaryDirectory() as folder:
        path = Path(folder) / MODEL_FILE
        save_calibrator(model, path, trusted=trusted)
        given = {"pip_requirements": requirements(model), **settings}
        return mlflow.pyfunc.log_model(
            name=name,
            loader_module=__name__,
            data_path=str(path),
            model_config={"trusted": list(trusted)},
            **given,
        )


def requirements(model: CalibratedClassifier) -> list[str]:
    """Return the packages, with their versions, that a logged model needs."""
    used = ["coolhead", "numpy", "scikit-learn", "pandas"]
    family = package_of(innermost(model.estimator_))
    return [f"{name}=={version(name)}" for name in [*used, family] if name]


def _load_pyfunc(path: str, model_config: dict[str, Any] | None = None) -> Any:
    """Read a model of `log_model`; MLflow calls this name."""
    trusted = (model_config or {}).get("trusted", ())
    return CalibratedModel(load_calibrator(path, trusted=trusted))


def log_evaluation(
    model: Any,
    data: Any,
    y: Any = None,
    *,
    sample_domain: Any = None,
    fitted_on: Iterable[str] | None = None,
    source: Iterable[str] = (),
    n_draws: int = 1000,
) -> list[DomainScores]:
    """Log how well a model does in each domain: metrics, all numbers, and the report.

    Metrics are called `ece_after/DOMAIN`, `ece_after_low/DOMAIN`, ... as in
    `DomainScores`; `calibration.html` is the report of `coolhead evaluate --report`.

    Parameters
    ----------
    model : CalibratedClassifier or Calibrator
        Fitted.
    data : array-like, table or DomainArchive
        X of rows that nothing was fitted on; for a calibrator of logits, a
        `DomainArchive` with labels.
    y : array-like of shape (n_samples,), default=None
        Labels, beside X.
    sample_domain : array-like of shape (n_samples,), default=None
        Domains, beside X.
    fitted_on : iterable of str, default=None
        As in `coolhead.evaluate.evaluate_domains`.
    source : iterable of str, default=()
        As in `coolhead.evaluate.evaluate_domains`.
    n_draws : int, default=1000
        As in `coolhead.evaluate.evaluate_domains`.

    Returns
    -------
    list of DomainScores
        One for each domain, after that of all rows.

    Examples
    --------
    Inside ``with mlflow.start_run():``, with the rows of two new sites:

    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([1.5, 2.0])
    >>> cal = ch.TemperatureScaling().fit(data.logits, data.labels)
    >>> from coolhead.evaluate import evaluate_domains
    >>> lines = evaluate_domains(cal, data, n_draws=100)
    >>> sorted(metrics_of(lines))[:2]       # what it logs, beside the report
    ['accuracy/all', 'accuracy/site-0']
    """
    with needs("coolhead.mlflow"):
        import mlflow
    from coolhead.report import write_evaluation_report

    if isinstance(model, CalibratedClassifier):
        data, model = _archive(model, data, y, sample_domain), model.calibrator_
    lines = evaluate_domains(
        model, data, fitted_on=fitted_on, source=source, n_draws=n_draws
    )
    mlflow.log_metrics(metrics_of(lines))
    with TemporaryDirectory() as folder:
        report = Path(folder) / "calibration.html"
        write_evaluation_report(report, model, data, lines, {})
        mlflow.log_artifact(str(report))
    return lines


def metrics_of(lines: Sequence[DomainScores]) -> dict[str, float]:
    """Return `{"ece_after/DOMAIN": value}`; characters that MLflow forbids become _.

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([2.0])
    >>> cal = ch.TemperatureScaling().fit(data.logits, data.labels)
    >>> from coolhead.evaluate import evaluate_domains
    >>> found = metrics_of(evaluate_domains(cal, data, n_draws=100))
    >>> "ece_after/site-0" in found
    True
    """
    found: dict[str, float] = {}
    for line in lines:
        domain = UNUSUAL.sub("_", line.domain)
        if f"n_rows/{domain}" in found:
            raise ValueError(
                f"two domains become {domain!r} in the names of metrics; wanted names "
                "that differ in letters, digits, space or any of _ - . : /"
            )
        for name, value in line._asdict().items():
            if isinstance(value, Interval):
                limits = {"": value.estimate, "_low": value.low, "_high": value.high}
                found |= {f"{name}{end}/{domain}": limits[end] for end in limits}
            elif isinstance(value, float | int) and name != "seen":
                found[f"{name}/{domain}"] = float(value)
    return found


def _archive(
    model: CalibratedClassifier, X: Any, y: Any, domains: Any
) -> DomainArchive:
    """Return logits and features of the classifier, as its calibrator gets them."""
    if y is None:
        raise ValueError("y is missing; wanted the labels of the rows")
    known = np.array(check_names(model.calibrated_classes, "classes_"))
    y = np.array([class_text(label) for label in np.asarray(y).tolist()])
    possible = class_positions(y, known) >= 0
    if not possible.any():
        raise ValueError(
            f"y holds no class that the classifier was fitted on (found {y[0]}); "
            f"wanted some of {', '.join(known[:5])}"
        )
    if not possible.all():
        warnings.warn(
            f"{int((~possible).sum())} of {len(y)} rows are left out of the "
            "evaluation: the classifier was not fitted on their class",
            stacklevel=3,
        )
        X, y = _safe_indexing(X, np.flatnonzero(possible)), y[possible]
        domains = None if domains is None else np.asarray(domains)[possible]
    logits, features = model._query(X)
    return DomainArchive(logits, features, y, domains, class_names=known.tolist())
