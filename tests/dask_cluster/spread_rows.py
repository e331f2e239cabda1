"""Rows to put on a cluster."""

import dask.array as da
import numpy as np


def distributed(rows: dict, n_rows: int = 1700) -> dict:
    """The same rows as Dask arrays in uneven blocks, also cut across columns."""
    return {
        name: da.from_array(
            values, chunks=(n_rows, 3) if values.ndim == 2 else n_rows + 11
        )
        for name, values in rows.items()
    }


def make_rows(seed: int, n_rows: int, dtype: type = np.float32) -> dict:
    """Overconfident logits whose best temperature depends on the features."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n_rows, 6)).astype(np.float32)
    features[: n_rows // 2, 0] += 4
    honest = rng.normal(scale=2, size=(n_rows, 8))
    labels = (honest + rng.gumbel(size=honest.shape)).argmax(axis=1)
    stretch = np.where(features[:, :1] > 2, 3.0, 1.5)
    domains = np.array(["art", "clipart", "photo"])[rng.integers(0, 3, n_rows)]
    return {
        "logits": (honest * stretch).astype(dtype),
        "labels": labels,
        "features": features,
        "sample_domain": domains,
        "sample_weight": rng.random(n_rows),
    }
