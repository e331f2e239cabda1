"""A trained network, a folder of predictions, and ten minutes later ONNX in service."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import polars as pl
import pytest
import torch

COMMAND = Path(sys.executable).with_name("coolhead")
PLACES = ("studio", "street", "night")


def coolhead(*words):
    """The installed command, as a user runs it."""
    done = subprocess.run(
        [COMMAND, *map(str, words)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def sample(rng, place, n_rows):
    """Two overlapping classes of points, moved and blurred by the place."""
    labels = rng.integers(0, 3, n_rows)
    middle = np.array([[0, 0], [2, 0], [0, 2]])[labels]
    noise = (0.7 + 0.4 * place) * rng.normal(size=(n_rows, 2))
    return (middle + noise + 0.3 * place).astype(np.float32), labels


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(2, 32), torch.nn.ReLU())
        self.head = torch.nn.Linear(32, 3)

    def forward(self, x):
        features = self.body(x)
        return self.head(features), features


@pytest.fixture(scope="module")
def network():
    """Trained in the first place only, until it is too sure of itself."""
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    points, labels = sample(rng, 0, 150)
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
    for _ in range(400):
        optimizer.zero_grad()
        logits, _ = net(torch.from_numpy(points))
        torch.nn.functional.cross_entropy(logits, torch.from_numpy(labels)).backward()
        optimizer.step()
    return net.eval()


def save_predictions(net, path, places, seed):
    rng = np.random.default_rng(seed)
    parts = [sample(rng, PLACES.index(place), 400) for place in places]
    with torch.no_grad():
        logits, features = net(torch.from_numpy(np.concatenate([p for p, _ in parts])))
    arrays = {
        "logits": logits.numpy(),
        "features": features.numpy(),
        "labels": np.concatenate([labels for _, labels in parts]),
        "domains": np.repeat(places, 400),
    }
    np.savez(path, **arrays)
    return arrays


def test_from_saved_predictions_to_onnx(network, tmp_path):
    known, new = tmp_path / "known.npz", tmp_path / "new.npz"
    save_predictions(network, known, ("studio", "street"), seed=1)
    arrays = save_predictions(network, new, ("night",), seed=2)
    cal, probs, onnx = (tmp_path / n for n in ("cal.skops", "p.parquet", "cal.onnx"))

    coolhead("fit", known, "--method", "ensemble", "--out", cal)
    seen = json.loads(coolhead("inspect", cal, "--json"))
    assert seen["metadata"]["domains"] == {"studio": 400, "street": 400}
    assert seen["calibrator"]["temperature"] > 1

    watched = json.loads(coolhead("apply", cal, new, "--out", probs, "--json"))
    assert watched["n_rows"] == 400
    scores = json.loads(coolhead("evaluate", cal, new, "--json"))["domains"][0]
    assert scores["ece_after"]["estimate"] < scores["ece_before"]["estimate"]
    assert watched["ece"] == pytest.approx(scores["ece_after"]["estimate"], abs=1e-6)

    coolhead("export", cal, "--onnx", onnx)
    session = onnxruntime.InferenceSession(onnx)
    feed = {name: arrays[name] for name in ("logits", "features")}
    (served,) = session.run(["probabilities"], feed)
    table = pl.read_parquet(probs)
    applied = table.select(f"prob_{i}" for i in range(3)).to_numpy()
    assert np.abs(served - applied).max() < 1e-5
    assert table["predicted"].to_list() == arrays["logits"].argmax(axis=1).tolist()
