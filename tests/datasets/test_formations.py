"""Simulated formations: seeded, labelled as simulated, and told apart by shape."""

import numpy as np
import pytest

from coolhead.io.reading import load_archive
from coolhead.lab import formations
from coolhead.lab.formations import (
    FORMATIONS,
    box_outline,
    contrast_features,
    formation_images,
    formation_shape,
    load_formations,
    place_units,
)
from coolhead.lab.heads.train import train_head


def test_images_are_balanced_and_seeded():
    images, labels, maps = formation_images(12, size=32)
    again, _, _ = formation_images(12, size=32)
    other, _, _ = formation_images(12, size=32, random_state=1)
    assert images.shape == (120, 32, 32, 3) and images.dtype == np.uint8
    np.testing.assert_array_equal(np.bincount(labels), [20] * 6)
    np.testing.assert_array_equal(np.bincount(maps), [12] * 10)
    np.testing.assert_array_equal(images, again)
    assert not np.array_equal(images, other)


def test_more_images_begin_with_the_same_ones():
    few, _, _ = formation_images(3, size=32)
    many, _, _ = formation_images(6, size=32)
    np.testing.assert_array_equal(few[:3], many[:3])
    np.testing.assert_array_equal(few[3:6], many[6:9])


def test_maps_differ_more_than_images_of_one_map():
    images, _, maps = formation_images(12, size=32)
    colour = images.reshape(len(images), -1, 3).mean(axis=1)
    centres = np.array([colour[maps == m].mean(axis=0) for m in range(10)])
    gaps = np.linalg.norm(centres[:, None] - centres, axis=2)
    inside = np.mean([colour[maps == m].std(axis=0).mean() for m in range(10)])
    assert np.median(gaps[gaps > 0]) > 4 * inside


def test_shapes_are_what_their_names_say():
    rng = np.random.default_rng(0)
    line, column, wedge, circle, box, scattered = (
        formation_shape(name, 12, rng) for name in FORMATIONS
    )
    assert np.ptp(line[:, 1]) == 0 and np.ptp(column[:, 0]) == 0
    np.testing.assert_allclose(wedge[:, 1], wedge[::-1, 1], atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(circle, axis=1), 0.85)
    np.testing.assert_allclose(np.abs(box).max(axis=1), 0.8)
    assert scattered.shape == (12, 2)
    corners = box_outline(np.array([0, 0.25, 0.5, 0.75]))
    np.testing.assert_allclose(corners / 0.8, [[-1, -1], [1, -1], [1, 1], [-1, 1]])
    with pytest.raises(ValueError, match="'phalanx'"):
        formation_shape("phalanx", 5, rng)


def test_units_stay_in_the_picture_mostly():
    rng = np.random.default_rng(0)
    places = np.concatenate([place_units(f, rng)[0] for f in FORMATIONS * 50])
    assert np.mean(np.abs(places).max(axis=1) < 1) > 0.97


def test_plain_features_tell_formations_apart():
    """Without torch: far better than the one in six of chance, on maps it knows."""
    archive = load_formations(36, "contrast")
    assert archive.features.shape == (360, 144)
    assert "simulated" in archive.metadata["note"]
    assert archive.class_names == FORMATIONS and archive.domain_names[9] == "map 9"
    small = np.random.default_rng(0).random(360) < 0.3
    head = train_head(archive, archive.domain_names, kind="logistic", small=small)
    watched = archive.rows(small)
    right = head.outputs(watched.features)[0].argmax(1) == watched.labels
    assert right.mean() > 0.3


def test_archive_is_kept(tmp_path, monkeypatch):
    first = load_formations(6, "contrast", cache=tmp_path / "kept")
    monkeypatch.setattr(formations, "formation_images", None)
    again = load_formations(6, "contrast", cache=tmp_path / "kept")
    np.testing.assert_array_equal(first.features, again.features)
    assert len(list((tmp_path / "kept").iterdir())) == 1
    path = next((tmp_path / "kept").iterdir())
    assert "simulated" in load_archive(path).metadata["note"]


def test_backbone_features():
    pytest.importorskip("efficientnet_lite_pytorch")
    archive = load_formations(1)
    assert archive.features.shape == (10, 1280)
    assert archive.metadata["backbone"] == "efficientnet-lite0"


def test_contrast_ignores_brightness():
    images, _, _ = formation_images(1, size=48)
    half = (images // 2).astype(np.uint8)
    np.testing.assert_allclose(
        contrast_features(images), contrast_features(half), atol=0.15
    )


def test_bad_numbers():
    with pytest.raises(ValueError, match="n_images must be >= 1"):
        formation_images(0)
