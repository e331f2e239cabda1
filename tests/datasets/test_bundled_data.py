"""The data that comes with the package is what its makers published."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chi2_contingency
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from coolhead.datasets import bundled, load_dataset
from coolhead.io.reading import load_archive
from coolhead.lab.images import split_large_small

SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.fixture(scope="module")
def sentiment():
    return load_dataset("sentiment")


@pytest.fixture(scope="module")
def digits():
    return load_dataset("digits")


def class_counts(archive, domain):
    part = archive.select(domain)
    return np.bincount(part.labels, minlength=archive.n_classes).tolist()


def probe(archive, source, target):
    """Accuracy of a linear classifier that learnt on one domain, on another's Small."""
    small = split_large_small(archive)
    learn = archive.rows(~small & (archive.domains == source))
    test = archive.rows(small & (archive.domains == target))
    model = LogisticRegression(C=0.1, max_iter=300).fit(learn.features, learn.labels)
    return model.score(test.features, test.labels)


def test_sentiment_has_the_published_snippets(sentiment):
    assert sentiment.domain_sizes() == {
        "amazon": 3708,
        "movies": 10605,
        "nyt": 5190,
        "tweets": 4200,
    }
    assert sentiment.class_names == ("negative", "neutral", "positive")
    assert sentiment.features.shape == (23703, 128)
    assert class_counts(sentiment, "amazon") == [1080, 1018, 1610]
    assert class_counts(sentiment, "movies") == [4862, 932, 4811]
    assert class_counts(sentiment, "nyt") == [1305, 3101, 784]
    assert class_counts(sentiment, "tweets") == [937, 1214, 2049]


def test_sentiment_groups_are_reviews_and_articles(sentiment):
    assert len(set(sentiment.ids)) == len(sentiment)
    small = split_large_small(sentiment)
    assert not np.intersect1d(sentiment.groups[small], sentiment.groups[~small]).size
    shares = [small[sentiment.domains == d].mean() for d in sentiment.domain_names]
    np.testing.assert_allclose(shares, 0.2, atol=0.005)
    review = [i for i in sentiment.ids if i.startswith("amazon/12_")]
    rows = np.isin(sentiment.ids, review)
    assert len(review) > 1
    assert len(set(sentiment.groups[rows])) == 1


def test_digits_have_four_domains(digits):
    assert digits.domain_sizes() == {
        "uci": 1797,
        "mnist": 5000,
        "serif": 5000,
        "sans": 5000,
    }
    assert digits.features.shape == (16797, 256)
    assert digits.features.min() == 0
    assert digits.features.max() == 1
    for domain in ("mnist", "serif", "sans"):
        assert class_counts(digits, domain) == [500] * 10


def stride_shares(archive, starts):
    """Slice, class counts and p-value against the rows left out, for every domain."""
    labels, codes = archive.labels, archive.domain_codes
    for step in range(2, 51):
        for rows in (slice(start, None, step) for start in starts(step)):
            for code, domain in enumerate(archive.domain_names):
                mine = labels[rows][codes[rows] == code]
                kept = np.bincount(mine, minlength=archive.n_classes)
                left = class_counts(archive, domain) - kept
                yield rows, domain, kept, chi2_contingency([kept, left]).pvalue


# A chance of 1e-4 leaves room for the luck of some 400 slices, 1e-6 for that of 5000.
@pytest.mark.parametrize("name", ["sentiment", "digits"])
def test_every_stride_keeps_all_classes_in_their_shares(name):
    for rows, domain, kept, p_value in stride_shares(load_dataset(name), lambda _: [0]):
        assert kept.all() and p_value > 1e-4, (rows, domain, kept)


def test_strides_from_any_row_keep_the_shares_of_digits(digits):
    for rows, domain, kept, p_value in stride_shares(digits, range):
        assert p_value > 1e-6, (rows, domain, kept)


def test_uci_digits_are_those_of_scikit_learn(digits):
    pixels, labels = load_digits(return_X_y=True)
    uci = digits.select("uci")
    uci = uci.rows(np.argsort(uci.ids))
    np.testing.assert_array_equal(uci.labels, labels)
    coarse = uci.features.reshape(-1, 8, 2, 8, 2).mean(axis=(2, 4)).reshape(-1, 64)
    assert np.corrcoef(coarse.ravel(), pixels.ravel())[0, 1] > 0.95


@pytest.mark.parametrize(("name", "limit"), [("sentiment", 8), ("digits", 6)])
def test_files_are_small_and_say_where_they_come_from(name, limit):
    path = bundled.FOLDER / f"{name}.safetensors"
    assert path.stat().st_size <= limit * 1_000_000
    metadata = load_archive(path).metadata
    for key in ("citation", "licence", "features", "built_with", "script"):
        assert metadata[key]
    assert (SCRIPTS / metadata["script"]).is_file()


def test_the_notice_names_the_files_that_are_there():
    notice = (bundled.FOLDER / "NOTICE.md").read_text()
    for name, checksum in bundled.CHECKSUMS.items():
        assert f"| `{name}.safetensors` | `{checksum}` |" in notice


@pytest.mark.parametrize("name", ["sentiment", "digits"])
def test_features_are_ready_to_learn_from(name):
    archive = load_dataset(name)
    assert archive.features.dtype == np.float32
    assert archive.logits is None


def test_a_linear_probe_learns_sentiment(sentiment):
    assert probe(sentiment, "movies", "movies") > 0.6
    # Elsewhere the same classifier is worse: this is what calibration is for.
    assert probe(sentiment, "movies", "nyt") < probe(sentiment, "nyt", "nyt")


def test_a_linear_probe_learns_digits(digits):
    assert probe(digits, "mnist", "mnist") > 0.88
    assert probe(digits, "sans", "serif") > 0.85
    assert 0.2 < probe(digits, "mnist", "uci") < 0.6


def test_unknown_names_get_a_suggestion():
    with pytest.raises(ValueError, match="did you mean 'sentiment'"):
        load_dataset("sentiments")
    with pytest.raises(ValueError, match="known: digits, sentiment"):
        load_dataset("mushrooms")


def test_damaged_files_are_refused(tmp_path, monkeypatch):
    data = bytearray((bundled.FOLDER / "digits.safetensors").read_bytes())
    data[-1000] ^= 1
    (tmp_path / "digits.safetensors").write_bytes(bytes(data))
    monkeypatch.setattr(bundled, "FOLDER", tmp_path)
    with pytest.raises(ValueError, match="is damaged: SHA-256"):
        load_dataset("digits")
    with pytest.raises(FileNotFoundError, match="reinstall"):
        load_dataset("sentiment")


@pytest.fixture(scope="module")
def builder():
    spec = importlib.util.spec_from_file_location(
        "build_digits", SCRIPTS / "build_digits.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_digits_have_the_order_of_their_script(digits, builder):
    numbers = np.array([int(name.split("/")[1]) for name in digits.ids])
    sizes = list(digits.domain_sizes().values())
    first = np.repeat(np.cumsum(sizes) - sizes, sizes)
    order = builder.shuffled_rows(digits.domain_codes)
    np.testing.assert_array_equal(numbers + first, order)
    np.testing.assert_array_equal(np.sort(order), np.arange(len(digits)))


@pytest.mark.parametrize("family", ["serif", "sans"])
def test_printed_digits_are_drawn_again(digits, builder, family):
    images, labels, ids = builder.printed_digits(family, 40)
    again, _, _ = builder.printed_digits(family, 40)
    np.testing.assert_array_equal(images, again)
    part = digits.select(family)
    part = part.rows(np.argsort(part.ids)[:40])
    np.testing.assert_array_equal(labels, part.labels)
    assert [f"{family}/{key}" for key in ids] == part.ids.tolist()
    # Another version of the font renderer may shift a grey level here and there.
    difference = np.abs(images / 255 - part.features)
    assert difference.mean() < 0.01
