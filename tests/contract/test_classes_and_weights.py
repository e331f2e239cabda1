"""Which column is which class, which rows count: the same number on every path.

Each test varies the inputs, not the method: labels and columns in every form, columns
and rows in any order, classes renamed or absent, rows of weight zero, repeated rows.
"""

import inspect
import json
import warnings
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import LeaveOneOut

import coolhead as ch
from contract.forms import (
    DIGITS,
    N_CLASSES,
    ORDER,
    WORDS,
    label_forms,
    matches,
    score_forms,
)
from contract.problems import EVERY, PROBLEMS
from coolhead.apply import apply_calibrator
from coolhead.calibrators.data import CalibrationData, fit_with
from coolhead.calibrators.offset import OffsetTemperature
from coolhead.io.reading import open_predictions

N_ROWS = 240
RNG = np.random.default_rng(0)


def problem():
    """Classes are called right with a bias, so that another order shows everywhere."""
    rng = np.random.default_rng(1)
    honest = rng.normal(scale=2, size=(N_ROWS, N_CLASSES))
    labels = (honest + rng.gumbel(size=honest.shape)).argmax(axis=1)
    labels[:N_CLASSES] = np.arange(N_CLASSES)
    return 1.7 * honest + np.linspace(0, 2, N_CLASSES), labels


LOGITS, LABELS = problem()
PROBABILITIES = ch.calibrators.Identity().fit(LOGITS, LABELS).predict_proba(LOGITS)
DOMAINS = np.repeat(["a", "b", "c"], N_ROWS // 3)


def blocks(values):
    """A Dask collection of what people hold in memory."""
    da, dd = pytest.importorskip("dask.array"), pytest.importorskip("dask.dataframe")
    if isinstance(values, pl.Series) and values.dtype == pl.Categorical:
        values = values.cast(pl.String)  # pandas would take its order for a choice
    if isinstance(values, pl.Series | pl.DataFrame):
        values = values.to_pandas()
    if isinstance(values, pd.Categorical):
        values = pd.Series(values)
    if isinstance(values, pd.DataFrame | pd.Series):
        return dd.from_pandas(values, npartitions=3)
    array = np.asarray(values)
    return da.from_array(array, chunks={0: N_ROWS // 3})


def watched(scores, labels):
    """What a monitor expects, and what it counts of the same rows."""
    cal = ch.baselines.VectorScaling().fit(scores, labels)
    monitor = ch.DriftMonitor.for_calibrator(
        cal, logits=scores, labels=labels, sample_domain=DOMAINS
    )
    monitor.update(cal.details(scores), labels)
    right = [correct for correct, _ in monitor.expected.right.values()]
    return np.append(np.sum(right, axis=0), monitor.counts["bin_correct"])


def updated(scores, labels):
    """Accuracy in a new domain, and by class, after some labels."""
    cal = ch.TemperatureScaling().fit(scores, labels)
    rows = np.arange(0, N_ROWS, 2)
    there = ch.NewDomain(cal, scores)
    there = there.with_labels(rows, take(labels, rows))
    numbers = sorted(part.n_rows for part in there.by_class().values())
    return np.array([there.accuracy.estimate, there.calibrator.offset, *numbers])


def take(values, rows):
    if isinstance(values, pd.Series):
        return values.iloc[rows]
    return [values[row] for row in rows] if isinstance(values, list) else values[rows]


def archived(scores, labels):
    data = ch.DomainArchive(scores, labels=labels)
    return ch.metrics.negative_log_likelihood(data.labels, logits=data.logits)


def spread(calibrator):
    return lambda s, y: (
        ch.dask.fit(clone(calibrator), blocks(s), blocks(y)).temperature_
    )


def evaluated(scores, labels):
    found = ch.dask.evaluate(None, blocks(scores), blocks(labels))
    return np.array([found.accuracy, found.negative_log_likelihood, found.brier_score])


FROM_LOGITS = {
    "fit_temperature": lambda s, y: ch.fit_temperature(s, y).temperature,
    "fit": lambda s, y: ch.baselines.BiasCorrectedTemperature().fit(s, y).nll_,
    "nll of logits": lambda s, y: ch.metrics.negative_log_likelihood(y, logits=s),
    "brier of logits": lambda s, y: ch.metrics.brier_score(y, logits=s),
    "archive": archived,
    "new domain": updated,
    "monitor": watched,
    "dask fit": spread(ch.TemperatureScaling()),
    "dask fit_temperature": lambda s, y: (
        ch.dask.fit_temperature(blocks(s), blocks(y)).temperature
    ),
    "dask evaluate": evaluated,
}


def metric_paths():
    """Every function of `coolhead.metrics` that takes labels and probabilities."""
    found = {}
    for name in ch.metrics.__all__:
        function = getattr(ch.metrics, name)
        if not inspect.isfunction(function):
            continue
        given = list(inspect.signature(function).parameters)
        if given[0] != "labels" or "classes" not in given:
            continue
        found[name] = function
    return found


METRICS = metric_paths()
FURTHER = {
    "calibration_gain": lambda f, p, y: f(y, p, p),
    "paired_bootstrap": lambda f, p, y: f(y, {"a": p}, n_draws=5).estimates["a"].low,
    "reliability_curve": lambda f, p, y: np.nan_to_num(f(y, p).accuracy),
    "risk_coverage_curve": lambda f, p, y: f(y, p).area,
    "subsample_ece": lambda f, p, y: (
        f(y, p, ch.metrics.draw_subsamples(N_ROWS, 50, n_draws=5)).estimate
    ),
}
FROM_PROBABILITIES = {
    name: (lambda s, y, f=f, n=name: FURTHER.get(n, lambda f, p, y: f(y, p))(f, s, y))
    for name, f in METRICS.items()
} | {"dask ece": lambda s, y: ch.dask.expected_calibration_error(blocks(y), blocks(s))}


def test_every_metric_of_labels_is_on_the_list():
    takes_labels = {
        name
        for name in ch.metrics.__all__
        if inspect.isfunction(getattr(ch.metrics, name))
        and "labels" in inspect.signature(getattr(ch.metrics, name)).parameters
    }
    assert takes_labels == set(METRICS)


@pytest.mark.parametrize("path", [*FROM_LOGITS, *FROM_PROBABILITIES])
def test_labels_and_columns_in_every_form(path):
    """Every form of labels with every form of scores, on every path of Python."""
    ask = (FROM_LOGITS | FROM_PROBABILITIES)[path]
    prefix, scores = (
        ("logit_", LOGITS) if path in FROM_LOGITS else ("prob_", PROBABILITIES)
    )
    wanted, met, visited = ask(scores, LABELS), 0, 0
    slow = path.startswith("dask") or path in ("monitor", "new domain")
    for label_name, labels, label_kind in label_forms(LABELS):
        for name, given, kind, order in score_forms(scores, prefix):
            expected, met = matches(label_kind, kind, order), met + 1
            # The slow paths share the code of the others: each form once is enough.
            rare = slow and (met + len(name)) % 13 and expected
            if expected is None or rare:
                continue
            visited += 1
            where = f"{label_name} beside {name}"
            if expected:
                found = ask(given, labels)
                np.testing.assert_allclose(found, wanted, rtol=1e-9, err_msg=where)
                continue
            with pytest.raises(ValueError, match=r"which column is which|is no class"):
                ask(given, labels)
    print(f"{path}: {visited} of {met} combinations")
    assert visited >= (150 if slow else 600)


TRUTH_FORMS = {
    "bool": lambda y: y,
    "object": lambda y: y.astype(object),
    "list": lambda y: y.tolist(),
    "pandas": pd.Series,
    "pandas boolean": lambda y: pd.Series(y, dtype="boolean"),
    "polars": pl.Series,
    "torch": torch.as_tensor,
}
TRUTH_COLUMNS = [None, ("no", "yes"), ("yes", "no"), ("True", "False"), ("1", "0")]


@pytest.mark.parametrize("path", [*FROM_LOGITS, *FROM_PROBABILITIES])
def test_truth_values_in_every_form(path):
    """False is the first column, unless the columns are called otherwise."""
    ask = (FROM_LOGITS | FROM_PROBABILITIES)[path]
    truth = LOGITS[:, 0] + RNG.gumbel(size=N_ROWS) > LOGITS[:, 1]
    scores = 0.8 * LOGITS[:, [1, 0]]
    if path not in FROM_LOGITS:
        scores = ch.calibrators.Identity().fit(scores, truth).predict_proba(scores)
    wanted = ask(scores, truth.astype(int))
    for columns, (name, form) in product(TRUTH_COLUMNS, TRUTH_FORMS.items()):
        given = scores
        if columns is not None:
            turned = columns[0] in ("yes", "True", "1")
            given = pd.DataFrame(scores[:, ::-1] if turned else scores)
            given.columns = columns
        found = ask(given, form(truth))
        where = f"{name} beside {columns}"
        np.testing.assert_allclose(found, wanted, rtol=1e-9, err_msg=where)


@pytest.mark.parametrize("form", ["digit", "word"])
def test_explicit_classes_always_count(form):
    classes = {"digit": sorted(DIGITS), "word": [WORDS[i] for i in ORDER]}[form]
    names = dict(
        zip({"digit": DIGITS, "word": WORDS}[form], range(N_CLASSES), strict=True)
    )
    columns = np.array([names[name] for name in classes])
    labels = np.array(list(names))[LABELS]
    wanted = ch.fit_temperature(LOGITS, LABELS).temperature
    found = ch.fit_temperature(LOGITS[:, columns], labels, classes=classes)
    assert found.temperature == pytest.approx(wanted, rel=1e-9)
    frame = pd.DataFrame(LOGITS, columns=list(names))
    cal = ch.baselines.VectorScaling().fit(frame, labels, classes=classes)
    assert cal.class_names_ == tuple(classes)
    plain = ch.baselines.VectorScaling().fit(LOGITS, LABELS).predict_proba(LOGITS)
    np.testing.assert_allclose(cal.predict_proba(frame), plain[:, columns], atol=1e-7)
    with pytest.raises(ValueError, match="classes has 2 names, the scores have 12"):
        ch.fit_temperature(LOGITS, labels, classes=["a", "b"])
    with pytest.raises(ValueError, match="holds 'a' twice"):
        ch.fit_temperature(LOGITS, labels, classes=["a"] * N_CLASSES)


def named(scores, classes, order=None):
    order = range(scores.shape[1]) if order is None else order
    return pd.DataFrame({f"logit_{classes[i]}": scores[:, i] for i in order})


# Calibrators of a new domain are not fitted: they move one that was.
FITTED = [n for n in EVERY if not isinstance(EVERY[n], OffsetTemperature)]


@pytest.mark.parametrize("name", FITTED)
def test_columns_in_another_order_at_prediction(fits, name):
    """Reordered by name; other names are refused; numbers count the columns."""
    rows = PROBLEMS["ordinary"]
    logits, features = rows["logits"], rows["features"]
    classes = WORDS[: logits.shape[1]]
    cal = clone(EVERY[name])
    data = record(rows, logits=named(logits, classes))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cal = fit_with(cal, data)
    wanted = cal.predict_proba(logits, features)
    turned = named(logits, classes, np.roll(np.arange(len(classes)), 2))
    np.testing.assert_array_equal(cal.predict_proba(turned, features), wanted)
    for part, same in zip(
        cal.confidence(turned, features), cal.confidence(logits, features), strict=True
    ):
        np.testing.assert_array_equal(part, same)
    with pytest.raises(ValueError, match=r"the columns are named bison, .* wanted"):
        other = named(logits, ("bison", *classes[1:]))
        cal.predict_proba(other, features)
    plain = fits(name)
    assert plain.class_names_ is None
    np.testing.assert_allclose(
        plain.predict_proba(turned, features),
        plain.predict_proba(turned.to_numpy(), features),
    )


def record(rows, **changes):
    given = {
        "logits": rows["logits"],
        "labels": rows["labels"],
        "features": rows["features"],
        "sample_domain": rows["domains"],
        "source_domain": rows["source"],
        "reference_features": rows["reference"],
        "target_features": rows["features"][::3] + np.float32(0.3),
        "target_logits": rows["logits"][::3],
    }
    return CalibrationData.of(**given | changes)


def quiet_fit(calibrator, data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit_with(clone(calibrator), data)


@pytest.mark.parametrize("name", FITTED)
def test_rows_of_weight_zero_change_nothing(name):
    """Not to the last digit: they are dropped before anything is computed."""
    rows = PROBLEMS["ordinary"]
    n_rows, rng = len(rows["labels"]), np.random.default_rng(0)
    weights = np.linspace(0.5, 2, n_rows)
    places = np.sort(rng.permutation(n_rows + 60)[:n_rows])  # of the rows that count
    every = np.zeros(n_rows + 60)
    every[places] = weights
    more = {}
    for part, junk in (("logits", 30.0), ("features", 9.0), ("labels", 0)):
        found = np.full((n_rows + 60, *rows[part].shape[1:]), junk, rows[part].dtype)
        found[places] = rows[part]
        more[part] = found
    more["logits"][np.setdiff1d(np.arange(n_rows + 60), places), 1] = 90.0
    domains = np.full(n_rows + 60, "elsewhere")
    domains[places] = rows["domains"]
    want = quiet_fit(EVERY[name], record(rows, sample_weight=weights))
    found = quiet_fit(
        EVERY[name], record(rows, **more, sample_domain=domains, sample_weight=every)
    )
    given = rows["logits"], rows["features"]
    np.testing.assert_array_equal(
        found.predict_proba(*given), want.predict_proba(*given)
    )


# Their fit counts rows: clusters, neighbours, networks, smoothed or prior counts.
COUNT_ROWS = [
    *("NearestCluster", "Regressed", "TemperatureEnsemble", "SelectByDomain", "Auto"),
    *("ShiftAware", "MultiDomain", "Parameterized", "DensityAware", "TwoStage"),
    *("Weighted", "CPCS", "TransCal", "Bayesian", "Platt", "Outside", "NewDomain"),
]


SUMMED = [n for n in FITTED if not any(word in n for word in COUNT_ROWS)]


@pytest.mark.parametrize("name", SUMMED)
def test_integer_weights_are_repeated_rows(name):
    rows = PROBLEMS["ordinary"]
    rows = rows | {"logits": rows["logits"].astype(np.float64)}
    times = np.random.default_rng(0).integers(0, 4, len(rows["labels"]))
    again = np.repeat(np.arange(len(times)), times)
    repeated = {
        "logits": rows["logits"][again],
        "labels": rows["labels"][again],
        "features": rows["features"][again],
        "sample_domain": rows["domains"][again],
    }
    want = quiet_fit(EVERY[name], record(rows, **repeated))
    found = quiet_fit(EVERY[name], record(rows, sample_weight=times))
    given = rows["logits"], rows["features"]
    np.testing.assert_allclose(
        found.predict_proba(*given), want.predict_proba(*given), rtol=0, atol=1e-8
    )


def test_the_lists_hold_most_calibrators():
    assert len(SUMMED) >= 12 and len(FITTED) >= 40


@pytest.mark.parametrize("name", FITTED)
def test_classes_renamed_and_absent(fits, name):
    """Names change nothing, nor does a class that no label holds."""
    rows = PROBLEMS["ordinary"]
    absent = rows["labels"] == 4
    labels = np.where(absent, 0, rows["labels"])
    classes = WORDS[6:12]
    given = rows["logits"], rows["features"]
    want = quiet_fit(EVERY[name], record(rows, labels=labels))
    names = np.array(classes, object)[labels]
    data = record(rows, labels=names, classes=classes)
    np.testing.assert_array_equal(
        quiet_fit(EVERY[name], data).predict_proba(*given), want.predict_proba(*given)
    )
    with pytest.raises(ValueError, match=r"5 names .* for 6 columns"):
        record(rows, labels=names)


class Scores(ClassifierMixin, BaseEstimator):
    """A classifier whose scores are the first columns of X; learns its classes."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):
        found = np.asarray(X)[:, : len(self.classes_)]
        return found[:, 1] - found[:, 0] if len(self.classes_) == 2 else found

    def predict(self, X):
        scores = self.decision_function(X)
        top = scores > 0 if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[np.asarray(top, int)]


@pytest.mark.parametrize(
    "labels", ["int", "list", "str", "object", "polars", "category", "bool"]
)
@pytest.mark.parametrize(
    "calibrator", [ch.TemperatureScaling(), None], ids=["T", "auto"]
)
def test_the_wrapper_is_the_calibrator(labels, calibrator):
    rng = np.random.default_rng(0)
    n_classes = 2 if labels == "bool" else 4
    X = rng.normal(scale=2, size=(400, n_classes))
    y = (X + rng.gumbel(size=X.shape)).argmax(axis=1)
    domains = np.repeat(["home", "away"], 200)
    forms = {
        "int": y * 10,
        "list": (y * 10).tolist(),
        "polars": pl.Series(np.array(["ant", "bee", "cow", "doe"])[y]),
        "str": np.array(["ant", "bee", "cow", "doe"])[y],
        "object": np.array(["ant", "bee", "cow", "doe"], object)[y],
        "category": pd.Series(np.array(["9", "10", "11", "12"])[y], dtype="category"),
        "bool": y == 1,
    }
    given = forms[labels]
    model = ch.CalibratedClassifier(Scores(), calibrator, source=["home"])
    model.fit(X, given, sample_domain=domains)
    np.testing.assert_array_equal(model.classes_, np.unique(np.asarray(given)))
    away = domains == "away"
    there = ch.NewDomain(model, X[away])
    rows = there.rows_to_label(20)
    answer = there.with_labels(rows, np.asarray(given)[away][rows])
    assert set(answer.by_class()) <= set(model.classes_.tolist())
    if labels == "category":
        return  # its columns are in text order, so the scores belong to other classes
    want = ch.DriftMonitor.for_calibrator(
        model.calibrator_,
        X if calibrator is None else None,
        domains,
        logits=X[:, :n_classes],
        labels=given,
        served=["away"],
    )
    monitor = ch.DriftMonitor.for_calibrator(model, X, domains, labels=given)
    monitor.update(model.details(X[away]), np.asarray(given)[away])
    correct = (X[away].argmax(axis=1) == y[away]).sum()
    assert monitor.counts["bin_correct"].sum() == correct
    assert sum(sum(r) for r, _ in monitor.expected.right.values()) == correct
    assert sum(sum(r) for r, _ in want.expected.right.values()) == correct


@pytest.mark.filterwarnings("ignore:.*better off uncalibrated")
def test_a_class_the_estimator_never_saw():
    """Probability zero; known classes unaffected to the last digit."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3))
    y = np.where(X[:, 0] + rng.normal(size=3000) > 0, "cat", "dog").astype(object)
    domains = np.repeat(["a", "b", "c"], 1000)
    with_okapi = y.copy()
    with_okapi[1500:1520] = "okapi"
    kept = with_okapi != "okapi"
    model = ch.CalibratedClassifier(LogisticRegression(), source=["a"])
    plain = clone(model).fit(X[kept], y[kept], sample_domain=domains[kept])
    with pytest.warns(UserWarning, match="20 of 3000 rows are left out of the calib"):
        model.fit(X, with_okapi, sample_domain=domains)
    assert model.classes_.tolist() == ["cat", "dog", "okapi"]
    found, want = model.predict_proba(X), plain.predict_proba(X)
    np.testing.assert_array_equal(found[:, :2], want)
    assert not found[:, 2].any() and "20 rows left out" in model.status_
    assert (model.predict(X) == plain.predict(X)).all()
    with pytest.warns(UserWarning, match="20 of 3000 rows has probability zero"):
        loss = ch.metrics.negative_log_likelihood(with_okapi, found)
    known = ch.metrics.negative_log_likelihood(with_okapi[kept], want[kept])
    assert loss == pytest.approx(known)
    # In a new domain such a row is a mistake, whatever the temperature.
    there = ch.NewDomain(model, X[1000:2000])
    rows = np.arange(500, 520)
    answer = there.with_labels(rows, with_okapi[1500:1520])
    assert answer.accuracy.estimate < there.accuracy.estimate
    assert answer.calibrator.calibrator_.offset == there.calibrator.calibrator_.offset
    monitor = ch.DriftMonitor.for_calibrator(model, X, domains, labels=with_okapi)
    monitor.update(model.details(X[1500:1520]), with_okapi[1500:1520])
    assert monitor.counts["bin_correct"].sum() == 0


def test_a_class_that_one_fold_never_saw():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 3))
    y = np.where(X[:, 0] + rng.normal(size=900) > 0, "cat", "dog").astype(object)
    domains = np.repeat(["a", "b", "c"], 300)
    y[5] = "okapi"
    model = ch.CalibratedClassifier(LogisticRegression(), ch.TemperatureScaling())
    with pytest.warns(UserWarning, match="1 of 900 rows are left out"):
        model.fit(X, y, sample_domain=domains)
    kept = y != "okapi"
    plain = clone(model).fit(X[kept], y[kept], sample_domain=domains[kept])
    apart = model.calibrator_.temperature_ / plain.calibrator_.temperature_
    assert apart == pytest.approx(1, abs=0.02)
    assert model.predict_proba(X)[:, 2].mean() < 0.01


def test_a_frozen_estimator_with_classes_in_an_order_of_its_own():
    rng = np.random.default_rng(0)
    X = rng.normal(scale=2, size=(300, 3))
    y = (X + rng.gumbel(size=X.shape)).argmax(axis=1)
    frozen = Scores().fit(X, [0, 1, 2] * 100)
    frozen.classes_ = np.array(["cow", "ant", "bee"])
    model = ch.CalibratedClassifier(FrozenEstimator(frozen), ch.TemperatureScaling())
    model.fit(X, frozen.classes_[y])
    assert model.classes_.tolist() == ["ant", "bee", "cow"]
    want = ch.TemperatureScaling().fit(X, y)
    assert model.calibrator_.temperature_ == want.temperature_
    np.testing.assert_array_equal(
        model.predict_proba(X), want.predict_proba(X)[:, [1, 2, 0]]
    )
    assert (model.predict(X) == frozen.predict(X)).all()


ENDINGS = ("npz", "csv", "parquet", "safetensors")


def write(path, scores, labels, classes, order):
    """Columns by name, where the format has names; else a list of class names."""
    ending = path.suffix[1:]
    if ending in ("npz", "safetensors"):
        codes = labels if labels.dtype.kind in "iu" else None
        listed = None if classes is None else [classes[i] for i in order]
        given = {"logits": scores[:, order], "labels": labels}
        if codes is not None:
            given["labels"] = np.argsort(order)[codes]
        if ending == "safetensors":
            ch.DomainArchive(**given, domains=DOMAINS, class_names=listed).save(path)
            return
        if listed is not None:
            given["class_names"] = listed
        np.savez(path, **given, domains=DOMAINS)
        return
    columns = {f"logit_{(classes or DIGITS)[i]}": scores[:, i] for i in order}
    table = pl.DataFrame(columns).with_columns(
        label=pl.Series(labels), domain=pl.Series(DOMAINS)
    )
    table.write_csv(path) if ending == "csv" else table.write_parquet(path)


NATURAL = np.arange(N_CLASSES)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("kind", ["number", "digit", "word"])
def test_the_command_line_gives_the_same_numbers(ending, kind, run, tmp_path):
    """Python = files, whatever their format, columns and labels."""
    classes = {"number": None, "digit": DIGITS, "word": WORDS}[kind]
    names = LABELS if classes is None else np.array(classes)[LABELS]
    cal, out = tmp_path / "cal.skops", tmp_path / "out.parquet"
    known, new = tmp_path / f"known.{ending}", tmp_path / f"new.{ending}"
    write(known, LOGITS, names, classes, NATURAL)
    done = run("fit", known, "--method", "vector", "--out", cal)
    assert done[0] == 0, done
    want = ch.baselines.VectorScaling().fit(LOGITS, LABELS).predict_proba(LOGITS)
    unnamed = classes is None and ending in ("npz", "safetensors")
    write(new, LOGITS, names, classes, NATURAL if unnamed else ORDER)
    done = run("apply", cal, new, "--out", out)
    assert done[0] == 0, done
    table = pl.read_parquet(out)
    found = table.select(f"prob_{name}" for name in classes or DIGITS).to_numpy()
    np.testing.assert_allclose(found, want, atol=1e-6)
    labels = table["label"].cast(pl.String).to_list()
    assert labels == [str(name) for name in names]
    code, text, said = run("evaluate", cal, new, "--json", "--draws", "10")
    assert code == 0, said
    scores = json.loads(text)["domains"][-1]
    right = float((want.argmax(axis=1) == LABELS).mean())
    assert scores["accuracy"] == pytest.approx(right)


def test_files_of_unnamed_columns_and_numbers_as_text_are_refused(tmp_path, run):
    path = tmp_path / "p.npz"
    np.savez(path, logits=LOGITS, labels=np.array(DIGITS)[LABELS])
    code, _, said = run("fit", path, "--out", tmp_path / "cal.skops")
    assert code == 1 and "nothing says which column is which" in said
    archive = ch.load_archive(path, class_names=DIGITS)
    np.testing.assert_array_equal(archive.labels, LABELS)


@pytest.mark.parametrize("name", SUMMED)
def test_rows_in_another_order(name):
    """A calibrator that learns from sums does not ask in which order rows came."""
    rows = PROBLEMS["ordinary"]
    rows = rows | {"logits": rows["logits"].astype(np.float64)}
    order = np.random.default_rng(0).permutation(len(rows["labels"]))
    turned = {part: rows[part][order] for part in ("logits", "labels", "features")}
    want = quiet_fit(EVERY[name], record(rows))
    found = quiet_fit(
        EVERY[name], record(rows, **turned, sample_domain=rows["domains"][order])
    )
    given = rows["logits"], rows["features"]
    np.testing.assert_allclose(
        found.predict_proba(*given), want.predict_proba(*given), rtol=0, atol=1e-8
    )


def test_booleans_need_two_columns():
    for ask in (
        lambda y: ch.fit_temperature(LOGITS, y),
        lambda y: ch.expected_calibration_error(y, PROBABILITIES),
        lambda y: ch.DomainArchive(LOGITS, labels=y),
        lambda y: ch.dask.fit_temperature(blocks(LOGITS), blocks(y)),
    ):
        for labels in (LABELS > 5, (LABELS > 5).astype(object)):
            with pytest.raises(ValueError, match="boolean, the scores have 12 columns"):
                ask(labels)


def test_dask_drops_rows_of_weight_zero():
    weights = np.tile([1.0, 0.0, 2.0], N_ROWS // 3)
    features = np.random.default_rng(0).normal(size=(N_ROWS, 3))
    for calibrator in (ch.TemperatureScaling(), ch.NearestClusterTemperature(2)):
        kept = weights > 0
        given = {"features": features, "sample_weight": weights}
        want = clone(calibrator).fit(
            LOGITS[kept],
            LABELS[kept],
            features=features[kept],
            sample_weight=weights[kept],
        )
        lazily = {name: blocks(part) for name, part in given.items()}
        found = ch.dask.fit(clone(calibrator), blocks(LOGITS), blocks(LABELS), **lazily)
        np.testing.assert_allclose(
            found.predict_proba(LOGITS, features),
            want.predict_proba(LOGITS, features),
            atol=1e-8,
        )
    lazily["sample_weight"] = blocks(np.where(weights > 1, -1.0, weights))
    with pytest.raises(ValueError, match=r"sample_weight holds -1\.0"):
        ch.dask.fit(ch.TemperatureScaling(), blocks(LOGITS), blocks(LABELS), **lazily)


def masked_problem():
    """Three classes that a classifier knows, and one of probability zero."""
    logits, labels = LOGITS[:, :4].copy(), LABELS % 4
    logits[:, 3] = -np.inf
    return logits, labels, labels != 3


@pytest.mark.parametrize(
    "calibrator",
    [
        ch.TemperatureScaling(),
        ch.TemperatureScaling(domain_weights="equal"),
        ch.NearestClusterTemperature(2),
        ch.RegressedTemperature(4),
        ch.TemperatureEnsemble(n_clusters=2),
        ch.baselines.VectorScaling(),
    ],
    ids=lambda calibrator: repr(calibrator)[:60],
)
@pytest.mark.filterwarnings("ignore:labels never hold")
def test_rows_of_a_masked_class_are_left_out_and_counted(calibrator):
    """In memory as in blocks: the fit is that of the other rows."""
    logits, labels, known = masked_problem()
    features = np.random.default_rng(0).normal(size=(N_ROWS, 3))
    given = {"features": features, "sample_domain": DOMAINS}
    beside = {name: part[known] for name, part in given.items()}
    want = clone(calibrator).fit(logits[known], labels[known], **beside)
    n_masked = int((~known).sum())
    lazily = {name: blocks(part) for name, part in given.items()}
    with pytest.warns(UserWarning, match=f"{n_masked} of {N_ROWS} rows are left out"):
        found = clone(calibrator).fit(logits, labels, **given)
    with pytest.warns(UserWarning, match=f"{n_masked} of {N_ROWS} rows are left out"):
        spread = ch.dask.fit(
            clone(calibrator), blocks(logits), blocks(labels), **lazily
        )
    for fitted in (found, spread):
        assert fitted.n_masked_ == n_masked
        np.testing.assert_allclose(
            fitted.predict_proba(logits, features),
            want.predict_proba(logits, features),
            atol=1e-8,
        )


def test_masked_rows_of_blocks():
    logits, labels, known = masked_problem()
    want = ch.fit_temperature(logits[known], labels[known]).temperature
    with pytest.warns(UserWarning, match="rows are left out"):
        found = ch.dask.fit_temperature(blocks(logits), blocks(labels))
    assert found.temperature == pytest.approx(want, rel=1e-9)
    with pytest.raises(ValueError, match="a masked class in every row that counts"):
        ch.dask.fit_temperature(blocks(logits), blocks(np.full(N_ROWS, 3)))


def test_a_class_absent_from_one_domain():
    """Renamed, permuted and in blocks: the same number where a domain lacks a class."""
    kept = ~((DOMAINS == "b") & (LABELS == 3))
    logits, labels, domains = LOGITS[kept], LABELS[kept], DOMAINS[kept]
    frame = pd.DataFrame({WORDS[i]: logits[:, i] for i in ORDER})
    names = np.array(WORDS, object)[labels]
    for calibrator in (
        ch.TemperatureScaling(domain_weights="equal"),
        ch.SelectByDomain(
            [ch.calibrators.Identity(), ch.TemperatureScaling()], combine="stack"
        ),
    ):
        want = clone(calibrator).fit(logits, labels, sample_domain=domains)
        found = clone(calibrator).fit(frame, names, sample_domain=domains)
        np.testing.assert_allclose(
            found.predict_proba(LOGITS[:, ORDER]),
            want.predict_proba(LOGITS)[:, ORDER],
            atol=1e-9,
        )


@pytest.mark.parametrize("classes", [("1", "2", "3"), ("30", "2", "10")])
def test_classes_called_by_integers_that_do_not_count_the_columns(
    classes, run, tmp_path
):
    """Column numbers inside a file, and its monitor, are never taken for names."""
    logits, labels = LOGITS[:, :3] + np.array([0.0, 1.0, 2.0]), LABELS % 3
    path, cal, out = (tmp_path / n for n in ("p.npz", "cal.skops", "out.parquet"))
    np.savez(path, logits=logits, labels=labels, class_names=classes, domains=DOMAINS)
    assert run("fit", path, "--method", "vector", "--out", cal)[0] == 0
    assert run("apply", cal, path, "--out", out)[0] == 0
    table, fitted = pl.read_parquet(out), ch.load_calibrator(cal)
    assert table["label"].to_list() == [classes[code] for code in labels]
    want = ch.baselines.VectorScaling().fit(logits, labels).predict_proba(logits)
    found = table.select(f"prob_{name}" for name in classes).to_numpy()
    np.testing.assert_allclose(found, want, atol=1e-6)
    names = np.array(classes)[labels]
    monitor = ch.DriftMonitor.for_calibrator(fitted, logits=logits, labels=names)
    opened = open_predictions(path, fitted.class_names_)
    apply_calibrator(fitted, opened, tmp_path / "again.parquet", monitor=monitor)
    right = int((want.argmax(axis=1) == labels).sum())
    assert monitor.counts["bin_correct"].sum() == right


def test_other_names_are_called_by_name():
    """Also where the first names are the same."""
    cal = ch.TemperatureScaling().fit(named(LOGITS, WORDS), LABELS)
    with pytest.raises(ValueError, match=r"\(bison is no class\)"):
        cal.predict_proba(named(LOGITS, (*WORDS[:-1], "bison")))


def test_agreement_is_judged_over_all_folds():
    """One row that disagrees is all of a fold that leaves one row out."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = np.where(X[:, 1] > X[:, 0], "b", "a")

    class Noisy(Scores):
        def predict(self, X):
            found = super().predict(X)
            return np.where(np.asarray(X)[:, 0] > 1.8, "a", found)

    model = ch.CalibratedClassifier(Noisy(), ch.TemperatureScaling(), cv=LeaveOneOut())
    model.fit(X + np.where(X[:, :1] > 1.8, [[0.0, 3.0]], 0.0), y)
    assert model.n_calibration_rows_ == 60
