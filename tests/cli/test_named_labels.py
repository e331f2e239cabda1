"""Labels and domains as people have them, on every path."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import coolhead as ch
from coolhead.io.reading import open_predictions, stream_blocks

NAMES = ("bird", "cat", "dog")


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    logits = rng.normal(scale=2, size=(60, 3))
    codes = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    return logits, codes, np.array(NAMES)[codes]


FORMS = {
    "array": lambda names: names,
    "objects": lambda names: names.astype(object),
    "list": lambda names: names.tolist(),
    "pandas": pd.Series,
    "category": lambda names: pd.Series(names, dtype="category"),
    "polars": lambda names: pl.Series(names.tolist()),
    "enum": lambda names: pl.Series(names.tolist(), dtype=pl.Enum(NAMES)),
    "bytes": lambda names: names.astype("S"),
}


@pytest.mark.parametrize("form", FORMS)
def test_names_in_calibrators_metrics_and_archives(rows, form):
    logits, codes, names = rows
    labels = FORMS[form](names)
    want = ch.TemperatureScaling().fit(logits, codes)
    found = ch.TemperatureScaling().fit(logits, labels)
    assert found.temperature_ == want.temperature_
    fit = ch.fit_temperature(logits, labels)
    assert fit.temperature == ch.fit_temperature(logits, codes).temperature
    p = want.predict_proba(logits)
    for metric in (
        ch.expected_calibration_error,
        ch.metrics.classwise_calibration_error,
        ch.metrics.brier_score,
        ch.metrics.negative_log_likelihood,
    ):
        assert metric(labels, p) == metric(codes, p)
    archive = ch.DomainArchive(logits=logits, labels=labels)
    np.testing.assert_array_equal(archive.labels, codes)
    assert archive.class_names == NAMES


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_columns_of_a_frame_say_which_class_is_which(rows, frame):
    logits, codes, names = rows
    order = [2, 0, 1]  # not the sorted one
    table = frame({f"logit_{NAMES[i]}": logits[:, i] for i in order})
    want = ch.TemperatureScaling().fit(logits, codes)
    found = ch.TemperatureScaling().fit(table, names)
    assert found.temperature_ == pytest.approx(want.temperature_)
    p = want.predict_proba(logits)
    named = frame({NAMES[i]: p[:, i] for i in order})
    few = slice(0, 3)
    assert ch.metrics.brier_score(names[few], named[few]) == pytest.approx(
        ch.metrics.brier_score(codes[few], p[few])
    )
    archive = ch.DomainArchive(logits=table, labels=names)
    assert archive.class_names == tuple(NAMES[i] for i in order)


def test_booleans(rows):
    logits, codes, _ = rows
    yes = codes == 1
    p = ch.TemperatureScaling().fit(logits[:, 1], yes).predict_proba(logits[:, 1])
    assert ch.metrics.brier_score(yes, p) == ch.metrics.brier_score(yes.astype(int), p)
    archive = ch.DomainArchive(logits=logits[:, 1], labels=yes)
    np.testing.assert_array_equal(archive.labels, yes)


@pytest.mark.parametrize("names", [("True", "False"), ("no", "yes"), ("yes", "no")])
@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz", None])
def test_booleans_are_looked_up_in_the_names_of_the_columns(
    rows, names, suffix, tmp_path
):
    logits, codes, _ = rows
    true = codes == 0
    at = names.index("True" if "True" in names else "yes")
    both = {names[at]: logits[:, 0], names[1 - at]: -logits[:, 0]}
    frame = pd.DataFrame({f"logit_{name}": both[name] for name in names})
    want = np.where(true, at, 1 - at)
    path = tmp_path / f"p.{suffix}"
    if suffix is None:
        found = ch.fit_temperature(frame, true).temperature
        assert found == ch.fit_temperature(frame.to_numpy(), want).temperature
        archive = ch.DomainArchive(logits=frame, labels=true)
    else:
        if suffix == "npz":
            np.savez(path, logits=frame.to_numpy(), labels=true, class_names=names)
        else:
            table = pl.from_pandas(frame).with_columns(label=pl.Series(true))
            table.write_csv(path) if suffix == "csv" else table.write_parquet(path)
        archive = ch.load_archive(path)
        blocks = stream_blocks(open_predictions(path), n_rows=7)
        streamed = np.concatenate([np.asarray(block.labels) for block in blocks])
        np.testing.assert_array_equal(streamed, want)
    np.testing.assert_array_equal(archive.labels, want)


@pytest.mark.parametrize(
    "change, said",
    [
        (lambda y: np.where(y == "cat", "dog", y), "2 names .* for 3 columns"),
        (lambda y: np.array([None, *y[1:]], object), "no name in row 0"),
        (lambda y: np.array([*y[:-1], 3], object), "mixes names .*3 in row 59"),
    ],
)
def test_refusals(rows, change, said):
    logits, _, names = rows
    wrong = change(names)
    with pytest.raises(ValueError, match=said):
        ch.TemperatureScaling().fit(logits, wrong)
    with pytest.raises(ValueError, match=said):
        ch.DomainArchive(logits=logits, labels=wrong)
    table = pd.DataFrame(logits, columns=["x", "y", "z"])
    if "columns" in said:
        with pytest.raises(ValueError, match="which is no class; classes: x, y, z"):
            ch.TemperatureScaling().fit(table, wrong)


@pytest.mark.parametrize(
    "domains, said",
    [
        (["a", 1], r"mixes names and numbers \(1 in row 1\)"),
        (["a", None], "no name in row 1"),
        ([pd.NA, 1], "no name in row 0"),
    ],
)
def test_domains_that_are_mixed_or_missing(rows, domains, said):
    logits, codes, _ = rows
    given = np.array(domains * 30, object)
    for use in (
        lambda: ch.TemperatureScaling().fit(logits, codes, sample_domain=given),
        lambda: ch.DomainArchive(logits=logits, labels=codes, domains=given),
    ):
        with pytest.raises(ValueError, match=said):
            use()


def write(path, logits, labels, **further):
    """A file of unnamed logits and named labels, None where there is none."""
    if path.suffix == ".npz":
        texts = np.array([label or "" for label in labels])
        np.savez(path, logits=logits, labels=texts)
        return
    table = pl.DataFrame({f"logit_{i}": logits[:, i] for i in range(3)} | further)
    table = table.with_columns(label=pl.Series(labels.tolist()))
    table.write_csv(path) if path.suffix == ".csv" else table.write_parquet(path)


@pytest.mark.parametrize("ending", [".npz", ".csv", ".parquet"])
def test_files(rows, ending, tmp_path):
    logits, codes, names = rows
    labels = names.astype(object)
    labels[::7] = None
    path = tmp_path / f"p{ending}"
    write(path, logits, labels)
    archive = ch.load_archive(path, labelled=True)
    known = np.array([label is not None for label in labels])
    np.testing.assert_array_equal(archive.labels, codes[known])
    assert archive.class_names == NAMES
    streamed = np.concatenate(
        [block.labels for block in stream_blocks(open_predictions(path), n_rows=10)]
    )
    np.testing.assert_array_equal(streamed, np.where(known, codes, -1))


@pytest.mark.parametrize("ending", [".npz", ".csv"])
def test_files_without_some_class_take_the_names_of_the_calibrator(
    rows, ending, tmp_path
):
    logits, codes, names = rows
    dogs = codes == 2
    path = tmp_path / f"p{ending}"
    write(path, logits[dogs], names[dogs].astype(object))
    with pytest.raises(ValueError, match=r"1 names \(dog\) for 3 columns"):
        ch.load_archive(path)
    archive = ch.load_archive(path, class_names=NAMES)
    assert set(archive.labels) == {2}


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_on_the_command_line(rows, ending, tmp_path, run):
    logits, codes, names = rows
    known, new = tmp_path / f"known{ending}", tmp_path / f"new{ending}"
    cal, out = tmp_path / "cal.skops", tmp_path / "out.parquet"
    write(known, logits, names.astype(object))
    some = np.flatnonzero(codes == 2)[:4]
    visits = {"visit": [f"v{i}" for i in some], "age": some, "id": some}
    write(new, logits[some], names[some].astype(object), **visits)
    done = run("fit", known, "--method", "set-level", "--out", cal)
    assert done[0] == 0, done
    done = run("apply", cal, new, "--out", out, "--keep", "visit,age")
    assert done[0] == 0, done
    table = pl.read_parquet(out)
    assert [name for name in table.columns if name.startswith("prob_")] == [
        f"prob_{name}" for name in NAMES
    ]
    assert table["label"].to_list() == ["dog"] * 4
    assert table["predicted"].to_list() == [NAMES[i] for i in logits[some].argmax(1)]
    assert table["visit"].to_list() == visits["visit"]
    assert table["age"].to_list() == table["id"].cast(int).to_list() == some.tolist()
    assert run("evaluate", cal, new, "--draws", "10")[0] == 0
    code, _, said = run("apply", cal, new, "--out", out, "--keep", "vist")
    assert code == 1 and "did you mean 'visit'" in said
