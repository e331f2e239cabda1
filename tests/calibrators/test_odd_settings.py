"""Odd settings and odd features of the cluster methods and of their ensemble."""

from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import coolhead as ch
from coolhead.shift.clusters import partition_features
from simulate import logits_and_labels, shifted_domains


@pytest.mark.parametrize("offset", [0.0, 1e5, 1e9])
@pytest.mark.parametrize("scaling", [None, "standardize", "l2"])
def test_features_far_from_the_origin_find_their_cluster(offset, scaling):
    rng = np.random.default_rng(0)
    features = offset + rng.normal(size=(200, 3)) + np.repeat(np.arange(4), 50)[:, None]
    partition = partition_features(features, 4, scaling=scaling)
    clusters = partition.clusters
    steps = clusters.transform(features)[:, None] - clusters.centers
    distances = np.linalg.norm(steps, axis=2)
    nearest, distance = clusters.assign(features)
    np.testing.assert_array_equal(nearest, distances.argmin(axis=1))
    np.testing.assert_array_equal(nearest, partition.assignment)
    np.testing.assert_allclose(distance, distances.min(axis=1), rtol=1e-6)


def test_clusters_a_rounding_error_apart_all_keep_members():
    rng = np.random.default_rng(0)
    features = 1e7 + 1e-6 * rng.normal(size=(200, 3))
    logits, labels = logits_and_labels(200, 3)
    method = ch.NearestClusterTemperature(8).fit(logits, labels, features=features)
    nearest, _ = method.clusters_.assign(features)
    assert len(np.unique(nearest)) == method.n_clusters_
    assert (method.temperature(logits, features) > 0).all()


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"n_clusters": True}, "n_clusters is True"),
        ({"penalty": np.nan}, "penalty is nan"),
        ({"min_cluster_size": -1}, "min_cluster_size is -1"),
    ],
)
def test_settings_without_a_meaning_are_refused(settings, message):
    logits, labels, features, _ = shifted_domains(n=50)
    method = ch.NearestClusterTemperature(**settings)
    with pytest.raises(ValueError, match=message):
        method.fit(logits, labels, features=features)


class TestClipped:
    def test_ensemble_shows_what_its_regression_clipped(self):
        logits, labels, features, _ = shifted_domains(temperatures=(1.0, 8.0, 1.0))
        ensemble = ch.TemperatureEnsemble(n_clusters=3)
        ensemble.fit(logits, labels, features=features)
        line: Any = ensemble.members_[-1]
        far = np.concatenate([features - 100, features, features + 100])
        assert ensemble.clipped_share_ == line.clipped_share_
        np.testing.assert_array_equal(ensemble.clipped(far), line.clipped(far))
        assert 0 < ensemble.clipped(far).mean() < 1

    def test_set_level_alone_clips_nothing(self):
        logits, labels, features, _ = shifted_domains(n=50)
        ensemble = ch.TemperatureEnsemble([ch.TemperatureScaling()]).fit(logits, labels)
        assert ensemble.clipped_share_ == 0
        assert not ensemble.clipped(features).any()

    def test_checks_its_features(self):
        logits, labels, features, _ = shifted_domains(n=50)
        method = ch.RegressedTemperature(3)
        with pytest.raises(NotFittedError):
            method.clipped(features)
        method.fit(logits, labels, features=features)
        with pytest.raises(ValueError, match="wanted 6, as in fit"):
            method.clipped(features[:, :2])
        with pytest.raises(ValueError, match="NaN in row 0"):
            method.clipped(np.full_like(features, np.nan))


class TestMembers:
    def test_without_features_where_no_member_uses_them(self):
        logits, labels = logits_and_labels(200, 3, scale=2.0)
        plain = ch.TemperatureScaling().fit(logits, labels)
        ensemble = ch.TemperatureEnsemble([ch.TemperatureScaling()]).fit(logits, labels)
        assert ensemble.temperature_ == pytest.approx(plain.temperature_)
        np.testing.assert_allclose(
            ensemble.predict_proba(logits), plain.predict_proba(logits)
        )

    @pytest.mark.parametrize(
        "members", [[], [ch.baselines.VectorScaling()], [("name", 1)]]
    )
    def test_refuses_what_has_no_temperature(self, members):
        logits, labels, features, _ = shifted_domains(n=50)
        with pytest.raises(ValueError, match="members holds"):
            ch.TemperatureEnsemble(members).fit(logits, labels, features=features)
