"""Names of a fitted calibrator, of frames, archives and files: one meaning everywhere.

Calibrators are fitted on one form of names and asked with another.
"""

import json
import zipfile
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, PredefinedSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import coolhead as ch
from coolhead.apply import apply_calibrator
from coolhead.evaluate import evaluate_domains
from coolhead.io.reading import open_predictions

N_ROWS = 300
WORDS = ("cat", "dog", "bee")  # not in the order of text
TURNED = [2, 0, 1]
RNG = np.random.default_rng(0)
HONEST = RNG.normal(scale=2, size=(N_ROWS, 3))
LABELS = (HONEST + RNG.gumbel(size=HONEST.shape)).argmax(axis=1)
LOGITS = 1.7 * HONEST + np.arange(3)
DOMAINS = np.repeat(["a", "b", "c"], N_ROWS // 3)
NAMES = np.array(WORDS)[LABELS]
BY_WORD = pd.DataFrame(LOGITS, columns=[f"logit_{word}" for word in WORDS])
BY_NUMBER = pd.DataFrame(LOGITS, columns=["logit_0", "logit_1", "logit_2"])
RIGHT = (LOGITS.argmax(axis=1) == LABELS).mean()

FITS = {
    "numbers": (LOGITS, LABELS, None),
    "polars by default": (pl.DataFrame(LOGITS), LABELS, None),
    "columns by number": (BY_NUMBER.iloc[:, TURNED], LABELS.astype(str), None),
    "columns by word": (BY_WORD, NAMES, None),
    "classes": (LOGITS, NAMES, list(WORDS)),
    "classes by number": (LOGITS, LABELS, ["0", "1", "2"]),
}
FRAMES = {
    "array": LOGITS,
    "numbers turned": BY_NUMBER.iloc[:, TURNED],
    "pandas by default turned": pd.DataFrame(LOGITS).iloc[:, TURNED],
    "polars by default turned": pl.DataFrame(LOGITS)[:, TURNED],
    "words": BY_WORD,
    "words turned": BY_WORD.iloc[:, TURNED],
}
LABEL_FORMS = {
    "numbers": LABELS,
    "floats": LABELS.astype(float),
    "words": NAMES,
    "objects": NAMES.astype(object),
    "ordered": pd.Series(pd.Categorical(NAMES, categories=WORDS, ordered=True)),
}


def blocks(values):
    dd = pytest.importorskip("dask.dataframe")
    if isinstance(values, pl.DataFrame):
        values = values.to_pandas()
    if isinstance(values, np.ndarray):
        values = pd.Series(values) if values.ndim == 1 else pd.DataFrame(values)
    return dd.from_pandas(values, npartitions=3)


def watched(calibrator, scores, labels):
    monitor = ch.DriftMonitor.for_calibrator(
        calibrator, logits=scores, labels=labels, sample_domain=DOMAINS
    )
    return sum(np.sum(right) for right, _ in monitor.expected.right.values()) / N_ROWS


def counted(calibrator, scores, labels):
    monitor = ch.DriftMonitor.for_calibrator(calibrator, logits=scores)
    monitor.update(calibrator.details(scores), labels)
    return monitor.counts["bin_correct"].sum() / N_ROWS


def believed(calibrator, scores, labels):
    there = ch.NewDomain(calibrator, scores)
    return there.with_labels(np.arange(200), labels[:200]).calibrator.offset


def left_out(calibrator, scores, labels):
    known = ch.new_domain.learn_evidence(
        calibrator, scores, labels, sample_domain=DOMAINS
    )
    return np.append(known.accuracy, known.class_shares)


def spread(calibrator, scores, labels):
    return ch.dask.evaluate(calibrator, blocks(scores), blocks(labels)).accuracy


def spread_domain(calibrator, scores, labels):
    there = ch.dask.new_domain(calibrator, blocks(scores))
    return there.with_labels(np.arange(200), labels[:200]).calibrator.offset


PATHS = {
    "monitor": watched,
    "new domain": believed,
    "evidence": left_out,
    "update": counted,
    "dask evaluate": spread,
    "dask new domain": spread_domain,
}


def has_a_meaning(fit, frame, labels):
    """Whether something says which label is which column."""
    words_known = fit in ("columns by word", "classes")
    if "words" in frame:
        # Numbers are those of the columns as given: here the columns are turned.
        return words_known if "turned" in frame else True
    return labels in ("numbers", "floats", "ordered") or words_known


@pytest.mark.parametrize("path", PATHS)
def test_fitted_on_one_form_and_asked_with_another(path):
    plain = ch.TemperatureScaling().fit(LOGITS, LABELS)
    want, answered = PATHS[path](plain, LOGITS, LABELS), 0
    for fit, (scores, known, classes) in FITS.items():
        calibrator = ch.TemperatureScaling().fit(scores, known, classes=classes)
        for frame, given in FRAMES.items():
            for form, labels in LABEL_FORMS.items():
                if not has_a_meaning(fit, frame, form):
                    continue
                if frame == "words turned" and form in ("numbers", "floats"):
                    continue
                try:
                    found = PATHS[path](calibrator, given, labels)
                except (ValueError, TypeError):
                    continue  # refused is never wrong
                answered += 1
                where = f"{fit}, {frame}, {form}"
                np.testing.assert_allclose(found, want, atol=1e-9, err_msg=where)
    assert answered > 60


def test_columns_that_polars_counts_are_reordered():
    cal = ch.baselines.VectorScaling().fit(pl.DataFrame(LOGITS), LABELS)
    want = cal.predict_proba(LOGITS)
    found = cal.predict_proba(pl.DataFrame(LOGITS)[:, TURNED])
    np.testing.assert_array_equal(found, want)
    assert cal.class_names_ is None


def test_columns_of_an_arrow_table_have_names():
    pa = pytest.importorskip("pyarrow")
    table = pa.table({f"logit_{w}": LOGITS[:, i] for i, w in enumerate(WORDS)})
    cal = ch.baselines.VectorScaling().fit(table, NAMES)
    assert cal.class_names_ == WORDS
    found = cal.predict_proba(table.select(TURNED).slice(0, 9))
    np.testing.assert_array_equal(found, cal.predict_proba(LOGITS[:9]))


@pytest.mark.parametrize("start", ["", "LABEL_", "class ", "c"])
def test_names_that_end_in_numbers_have_no_order_of_their_own(start):
    logits, labels = np.hstack([LOGITS] * 4), np.arange(N_ROWS) % 12
    names = np.array([f"{start}{label}" for label in labels])
    with pytest.raises(ValueError, match="which column is which"):
        ch.fit_temperature(logits, names)
    classes = [f"{start}{number}" for number in range(12)]
    found = ch.fit_temperature(logits, names, classes=classes).temperature
    assert found == ch.fit_temperature(logits, labels).temperature


def test_words_beside_classes_that_are_numbers():
    """The words of a frame are found by its columns; beside an array they are none."""
    want = ch.fit_temperature(LOGITS, LABELS).temperature
    numbers = ["0", "1", "2"]
    found = ch.fit_temperature(BY_WORD, NAMES, classes=numbers).temperature
    assert found == want
    with pytest.raises(ValueError, match=r"'bee' in row \d+, which is no class"):
        ch.fit_temperature(LOGITS, NAMES, classes=numbers)


def test_words_and_numbers_in_different_blocks_are_refused():
    da = pytest.importorskip("dask.array")
    labels = np.array([*LABELS[:100].tolist(), *NAMES[100:]], object)
    for ask, given in (
        (ch.fit_temperature, (LOGITS, labels)),
        (
            ch.dask.fit_temperature,
            (da.from_array(LOGITS, (100, 3)), da.from_array(labels, 100)),
        ),
    ):
        with pytest.raises(ValueError, match="labels mixes names"):
            ask(*given)


def classified(labels):
    model = ch.CalibratedClassifier(
        LogisticRegression(), ch.TemperatureScaling(), source=["a"]
    )
    return HONEST, model.fit(HONEST, labels, sample_domain=DOMAINS)


@pytest.mark.parametrize("fit", ["float", "Int64"])
@pytest.mark.parametrize("form", ["int", "float", "object", "Int64", "str"])
def test_classes_that_are_floats_without_a_fraction(fit, form):
    """scikit-learn makes floats of pandas' nullable integers."""
    labels = pd.Series(LABELS + 1)
    X, model = classified(labels.astype(fit))
    given = labels.astype(form)
    numbers = classified(labels)[1]
    low = np.flatnonzero(LABELS < 2)  # as column numbers these would exist, too
    want = ch.NewDomain(numbers, X).with_labels(low, labels.iloc[low])
    found = ch.NewDomain(model, X).with_labels(low, given.iloc[low])
    assert found.accuracy.estimate == pytest.approx(want.accuracy.estimate)
    monitor = ch.DriftMonitor.for_calibrator(model, X, DOMAINS, labels=given)
    monitor.update(model.details(X[low]), given.iloc[low])
    right = (model.predict(X)[low] == labels.iloc[low]).sum()
    assert monitor.counts["bin_correct"].sum() == right


def test_sets_have_the_columns_of_the_classifier():
    names = NAMES.astype(object)
    names[150] = "ant"  # not in the source
    with pytest.warns(UserWarning, match="1 of 200 rows"):
        X, model = classified(names)
    with pytest.warns(UserWarning, match="1 of 200 rows"):
        known = ch.new_domain.learn_evidence(model, X, names, sample_domain=DOMAINS)
    found = ch.NewDomain(model, X, evidence=known).sets(0.6)
    assert found.members.shape == (N_ROWS, 4) and not found.members[:, 0].any()
    top = model.predict_proba(X).argmax(axis=1)
    assert found.members[np.arange(N_ROWS), top].all()


def test_archives_are_evaluated_in_the_order_of_the_calibrator(tmp_path):
    cal = ch.baselines.VectorScaling().fit(BY_WORD, NAMES)
    turned = ch.DomainArchive(BY_WORD.iloc[:, TURNED], labels=NAMES, domains=DOMAINS)
    plain = ch.DomainArchive(BY_WORD, labels=NAMES, domains=DOMAINS)
    want, found = (evaluate_domains(cal, a, n_draws=10) for a in (plain, turned))
    assert found == want
    pages = [
        ch.report.write_evaluation_report(tmp_path / name, cal, archive, want, {})
        for name, archive in (("one.html", plain), ("two.html", turned))
    ]
    assert pages[0].read_bytes() == pages[1].read_bytes()
    other = turned.replace(class_names=["bison", "cat", "dog"])
    with pytest.raises(ValueError, match=r"bison is no class"):
        evaluate_domains(cal, other, n_draws=10)
    turned.save(tmp_path / "turned.safetensors")
    opened = open_predictions(tmp_path / "turned.safetensors")
    with pytest.raises(ValueError, match="columns in another order"):
        apply_calibrator(cal, opened, tmp_path / "out.csv")


def without_names(path, names):
    """A file as version 0.2 wrote it: names of classes in the metadata alone."""
    cal = ch.baselines.VectorScaling().fit(LOGITS, LABELS)
    del cal.class_names_
    ch.save_calibrator(cal, path, metadata={"class_names": names})
    with zipfile.ZipFile(path) as file:
        assert all(b"class_names_" not in file.read(n) for n in file.namelist())
    return ch.load_calibrator(path)


def test_files_of_version_02_know_their_classes(tmp_path):
    cal = without_names(tmp_path / "cal.skops", list(WORDS))
    assert cal.class_names_ == WORDS and cal.n_masked_ == 0
    want = cal.predict_proba(LOGITS)
    found = cal.predict_proba(BY_WORD.iloc[:, TURNED])
    np.testing.assert_array_equal(found, want)
    right = (want.argmax(axis=1) == LABELS).mean()
    assert watched(cal, LOGITS, NAMES) == right == counted(cal, LOGITS, NAMES)
    for free in (["cat", "dog"], ["cat", "cat", "dog"], {"cat": 1}, "cat", None):
        assert without_names(tmp_path / "free.skops", free).class_names_ is None


@pytest.mark.parametrize("ending", ["npz", "safetensors"])
def test_labels_beside_features_alone_are_moved(ending, tmp_path):
    path, own = tmp_path / f"f.{ending}", ["bee", "cat", "dog"]
    archive = ch.DomainArchive(
        features=HONEST, labels=NAMES, domains=DOMAINS, class_names=own
    )
    if ending == "npz":
        np.savez(path, features=HONEST, labels=archive.labels, class_names=own)
    else:
        archive.save(path)
    for wanted in (WORDS, ("dog", "ant", "cat", "bee")):
        found = ch.load_archive(path, class_names=wanted)
        assert found.class_names == wanted
        np.testing.assert_array_equal(np.array(wanted)[found.labels], NAMES)
    with pytest.raises(ValueError, match="which is no class"):
        ch.load_archive(path, class_names=["ant", "cat", "dog"])


def test_a_head_knows_its_classes():
    data = ch.DomainArchive(features=HONEST, labels=NAMES, domains=DOMAINS)
    head = ch.train_head(data, ["a"], kind="logistic")
    other = ch.DomainArchive(
        features=HONEST, labels=NAMES, domains=DOMAINS, class_names=WORDS
    )
    want, found = head.apply(data), head.apply(other)
    assert found.class_names == want.class_names == ("bee", "cat", "dog")
    np.testing.assert_array_equal(found.labels, want.labels)
    unknown = ch.DomainArchive(features=HONEST, labels=np.char.add(NAMES, "s"))
    with pytest.raises(ValueError, match=r"'bees' in row .*, which is no class"):
        head.apply(unknown)


def test_training_rows_of_a_sweep_that_lack_a_class(tmp_path):
    """The archive to train on is read with the classes of the data."""
    from coolhead.lab.classifiers import Training, train_classifier
    from coolhead.lab.protocol import ArchiveData, Classifier, Division

    names = np.array(["ant", "bee", "cow"])[LABELS]
    frame = pd.DataFrame(HONEST, columns=[f"feature_{i}" for i in range(3)])
    frame = frame.assign(label=names, domain=DOMAINS)
    frame.to_csv(tmp_path / "data.csv", index=False)
    frame[names != "bee"].to_csv(tmp_path / "train.csv", index=False)
    data = ArchiveData(
        kind="archive", path=tmp_path / "data.csv", train_path=tmp_path / "train.csv"
    )
    chosen = Classifier.model_validate({"kind": "logistic"})
    training = Training(data, "", chosen, ("a",), Division(), 0, 0)
    (tmp_path / "run").mkdir()
    found = ch.load_archive(train_classifier(training, tmp_path / "run"))
    kept = found.labels != 1
    right = np.asarray(found.logits).argmax(axis=1) == found.labels
    assert found.n_classes == 3 and right[kept].mean() > 0.8


def test_columns_of_x_in_another_order():
    """A pipeline that picks columns by name is indifferent; so are the features."""
    y, X = LABELS > 0, pd.DataFrame(HONEST * [1, 10, 3], columns=["u", "v", "w"])
    picked = ColumnTransformer([("scaled", StandardScaler(), ["u", "v", "w"])])
    for table in (X, X.assign(kind=np.where(LABELS > 1, "p", "q"))):
        model = ch.CalibratedClassifier(
            make_pipeline(picked, LogisticRegression()),
            ch.TemperatureEnsemble(n_clusters=3),
        )
        model.fit(table, y, sample_domain=DOMAINS)
        want = model.predict_proba(table)
        turned = table[list(table.columns[::-1])]
        np.testing.assert_array_equal(model.predict_proba(turned), want)
    renamed = table.rename(columns={"kind": "sort"})
    with pytest.raises(ValueError, match="X has no column kind"):
        model.predict_proba(renamed)


@pytest.mark.parametrize(
    "several",
    [partial(VotingClassifier, voting="soft"), partial(StackingClassifier, cv=2)],
    ids=["voting", "stacking"],
)
def test_weights_reach_the_members_of_a_committee(several):
    y, weights = LABELS > 0, np.where(LABELS > 0, 20.0, 1.0)
    parts = [(name, LogisticRegression()) for name in "ab"]
    model = ch.CalibratedClassifier(several(parts), ch.TemperatureScaling(), cv=2)
    inner = model.fit(HONEST, y, sample_weight=weights).estimator_.estimators_[0]
    alone = LogisticRegression().fit(HONEST, y, sample_weight=weights)
    np.testing.assert_allclose(inner.coef_, alone.coef_, atol=1e-3)
    with sklearn.config_context(enable_metadata_routing=False):
        parts.append(("c", make_pipeline(LogisticRegression())))
        with pytest.warns(UserWarning, match="does not take sample_weight"):
            model.set_params(estimator=several(parts))
            model.fit(HONEST, y, sample_weight=weights)


def test_folds_that_are_named_for_every_row():
    y, weights = LABELS > 0, np.tile([1.0, 0.0, 2.0], N_ROWS // 3)
    fold = np.arange(N_ROWS) // 7 % 3
    listed = [np.nonzero(fold != i) + np.nonzero(fold == i) for i in range(3)]
    found = [
        ch.CalibratedClassifier(LogisticRegression(), ch.TemperatureScaling(), cv=cv)
        .fit(HONEST, y, sample_weight=weights)
        .calibrator_.temperature_
        for cv in (PredefinedSplit(fold), listed)
    ]
    assert found[0] == found[1]
    for cv, said in (([], "cv gives no fold"), (GroupKFold(2), "sample_domain is")):
        model = ch.CalibratedClassifier(
            LogisticRegression(), ch.TemperatureScaling(), cv=cv
        )
        with pytest.raises(ValueError, match=said):
            model.fit(HONEST, y)


def test_a_saved_calibrator_by_number_and_a_file_by_word(run, tmp_path):
    cal, path = tmp_path / "cal.skops", tmp_path / "words.parquet"
    ch.save_calibrator(ch.TemperatureScaling().fit(BY_NUMBER, LABELS), cal)
    BY_WORD.assign(label=NAMES, domain=DOMAINS).to_parquet(path)
    code, text, said = run("evaluate", cal, path, "--json", "--draws", "10")
    assert code == 0, said
    assert json.loads(text)["domains"][-1]["accuracy"] == pytest.approx(RIGHT)
    assert run("apply", cal, path, "--out", tmp_path / "out.parquet")[0] == 0
    table = pl.read_parquet(tmp_path / "out.parquet")
    want = ch.load_calibrator(cal).predict_proba(LOGITS)
    found = table.select(f"prob_{word}" for word in WORDS).to_numpy()
    np.testing.assert_allclose(found, want, atol=1e-6)
