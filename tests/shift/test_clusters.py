"""k-means rehearsed in a few components is no worse than in all columns."""

import numpy as np
import pytest
from sklearn.cluster import KMeans

from coolhead.shift.clusters import partition_features


def inertia(rows, partition):
    centers = partition.clusters.centers[partition.assignment]
    return float(np.sum((rows - centers) ** 2))


def blobs(n_columns, seed, n_rows=400):
    """Twelve uneven groups in noise of slowly falling spread, as features have it."""
    rng = np.random.default_rng(seed)
    spread = 1 / np.sqrt(1 + np.arange(n_columns))
    group = rng.integers(0, 12, n_rows) // rng.integers(1, 3, n_rows)
    return rng.normal(size=(12, n_columns))[group] * spread + 0.6 * spread * rng.normal(
        size=(n_rows, n_columns)
    )


@pytest.mark.parametrize("n_columns", [40, 300])
@pytest.mark.parametrize("n_clusters", [2, 16])
def test_no_worse_than_ten_starts_in_all_columns(n_columns, n_clusters):
    ratios = []
    for seed in range(3):
        rows = blobs(n_columns, seed)
        wanted = KMeans(n_clusters, n_init=10, random_state=0).fit(rows).inertia_
        found = partition_features(rows, n_clusters)
        assert len(found.clusters.centers) == n_clusters
        ratios.append(inertia(rows, found) / wanted)
    assert np.mean(ratios) < 1.005
    assert max(ratios) < 1.02


def test_equal_rows_in_many_columns_make_fewer_clusters():
    rows = np.repeat(np.random.default_rng(0).normal(size=(3, 400)), 20, axis=0)
    found = partition_features(rows, 8)
    assert found.n_merged == 5
    assert len(found.clusters.centers) == 3
    assert inertia(rows, found) < 1e-18


def test_the_same_seed_gives_the_same_bits():
    rows = blobs(300, 0).astype(np.float32)
    one, two = (partition_features(rows, 8, random_state=3) for _ in range(2))
    assert one.clusters.centers.tobytes() == two.clusters.centers.tobytes()
