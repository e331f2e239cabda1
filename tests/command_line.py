"""Predictions of three domains, and the command line inside this process."""

import sys

import numpy as np
import pytest

from coolhead.cli import main


def simulate_predictions(n_rows=300, n_classes=4, seed=0):
    """Logits that are too sharp, the more so in later domains."""
    rng = np.random.default_rng(seed)
    domains = np.repeat(["clipart", "product", "real"], n_rows // 3)
    shift = np.repeat([0.0, 1.0, 2.0], n_rows // 3)[:, None]
    features = rng.normal(size=(n_rows, 6))
    features[:, :1] += shift
    honest = features @ rng.normal(size=(6, n_classes))
    gumbel = rng.gumbel(size=honest.shape)
    return {
        "logits": ((2 + shift) * honest).astype(np.float32),
        "features": features.astype(np.float32),
        "labels": (honest + gumbel).argmax(axis=1),
        "domains": domains,
    }


@pytest.fixture
def predictions():
    return simulate_predictions()


@pytest.fixture
def npz(tmp_path, predictions):
    path = tmp_path / "preds.npz"
    np.savez(path, **predictions)
    return path


@pytest.fixture
def run(monkeypatch, capsys):
    """Run a command; returns (exit code, standard output, standard error)."""

    def command(*words):
        monkeypatch.setattr(sys, "argv", ["coolhead", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            main()
        shown = capsys.readouterr()
        return stop.value.code, shown.out, shown.err

    return command
