"""Thumbnails of digits, formations and folders, and the examples of a cell."""

from base64 import b64decode
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from coolhead.datasets import load_dataset
from coolhead.io.archive import DomainArchive
from coolhead.lab.cell import evaluate_cell
from coolhead.lab.formations import formation_image, formation_images
from coolhead.lab.pictures import LARGEST, find_pictures, thumbnail
from coolhead.lab.plan import Split
from coolhead.lab.protocol import (
    ArchiveData,
    BundledData,
    EvaluationSettings,
    FormationsData,
    Methods,
)


def decoded(text):
    return Image.open(BytesIO(b64decode(text)))


def test_a_digit_keeps_its_pixels():
    pictures = find_pictures(BundledData(kind="bundled", dataset="digits"))
    shown = np.asarray(decoded(pictures(7, "")))
    wanted = load_dataset("digits").features[7].reshape(16, 16) * 255
    assert np.abs(shown - wanted).max() <= 0.5


def test_text_has_no_pictures():
    assert find_pictures(BundledData(kind="bundled", dataset="sentiment")) is None
    assert find_pictures(ArchiveData(kind="archive", path="x.npz")) is None


def test_formations_are_drawn_again():
    images, _, _ = formation_images(3, size=32, random_state=4)
    again = formation_image(5, 2, size=32, random_state=4)
    assert (images[5 * 3 + 2] == again).all()
    data = FormationsData(kind="formations", n_images=3, random_state=4)
    text = find_pictures(data)(17, "")
    assert decoded(text).size[0] >= 16 and len(text) <= LARGEST


def test_files_of_a_folder(tmp_path):
    noise = np.random.default_rng(0).integers(255, size=(90, 60, 3), dtype=np.uint8)
    Image.fromarray(noise).save(tmp_path / "a.png")
    (tmp_path / "broken.jpg").write_text("no image")
    data = ArchiveData(kind="archive", path="x.npz", images=tmp_path)
    pictures = find_pictures(data)
    assert len(pictures(0, "a.png")) <= LARGEST
    assert pictures(0, "broken.jpg") is None
    assert pictures(0, "missing.png") is None


@pytest.mark.parametrize("size", [(1, 1), (500, 3), (16, 16), (300, 300)])
def test_thumbnails_stay_small(size):
    noise = np.random.default_rng(0).integers(255, size=(*size, 3), dtype=np.uint8)
    assert 0 < len(thumbnail(Image.fromarray(noise))) <= LARGEST


def test_examples_are_the_surest_mistakes():
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=300)
    logits = rng.normal(size=(300, 3)) * 3
    logits[np.arange(300), labels] += 2
    domains = np.repeat(["a", "b", "c"], 100)
    archive = DomainArchive(
        logits, None, labels, domains, class_names=["x", "y", "z"], ids=np.arange(300)
    )
    small = np.arange(300) % 5 == 0
    result = evaluate_cell(
        archive,
        small,
        Split(("a",), ("b",), ("c",)),
        Methods(names=("uncalibrated", "set-level")),
        EvaluationSettings(size=40, draws=5, bootstrap=10),
        pictures=lambda row, name: f"picture of {row} {name}",
    )
    rows = [r for r in result.tables["examples"] if r["method"] == "uncalibrated"]
    chances = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    wrong = (domains == "c") & ~small & (logits.argmax(axis=1) != labels)
    order = np.flatnonzero(wrong)[np.argsort(-chances.max(axis=1)[wrong])][:6]
    assert [int(r["id"]) for r in rows] == order.tolist()
    for row, place in zip(rows, order, strict=True):
        assert row["label"] == "xyz"[labels[place]]
        assert row["predicted"] == "xyz"[logits[place].argmax()]
        assert row["confidence"] == pytest.approx(chances[place].max())
        assert row["thumbnail"] == f"picture of {place} {place}"
    later = [r for r in result.tables["examples"] if r["method"] == "set-level"]
    assert all(r["thumbnail"] == "" for r in later) and len(later) == len(rows)
