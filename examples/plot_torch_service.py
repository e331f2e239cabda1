"""
From a torch network to a service that watches itself
=====================================================

A network and its data loaders, calibrated in one call, exported to ONNX, served one row
at a time without torch, with a drift monitor in the loop.
"""

# %%
# A network that reads digits of one kind. Rows it was not trained on calibrate it.
import copy
import tempfile
from pathlib import Path

import numpy as np
import onnxruntime
import torch
from fastapi import FastAPI
from fastapi.testclient import TestClient
from torch.utils.data import DataLoader, TensorDataset

import coolhead as ch

torch.manual_seed(0)
digits = ch.load_dataset("digits")


def loader(domain, start, step):
    rows = digits.select(domain).rows(slice(start, None, step))
    pair = torch.tensor(rows.features), torch.tensor(rows.labels)
    return DataLoader(TensorDataset(*pair), batch_size=100, shuffle=True)


net = torch.nn.Sequential(
    torch.nn.Linear(256, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10)
)
adam = torch.optim.Adam(net.parameters(), lr=3e-3)
for _ in range(5):
    for images, labels in loader("mnist", 0, 2):
        adam.zero_grad()
        torch.nn.functional.cross_entropy(net(images), labels).backward()
        adam.step()

# %%
# Calibrated and exported. The monitor expects what the calibration domains show.
held_out = {
    "mnist": loader("mnist", 1, 8),
    "sans": loader("sans", 0, 8),
    "uci": loader("uci", 0, 3),
}
calibrated = ch.torch.calibrate(net, held_out, ch.TemperatureEnsemble())
calibrator = calibrated.softmax.calibrator
seen = ch.torch.collect_predictions(net, held_out)
expecting = ch.DriftMonitor.for_calibrator(
    calibrator, seen.features, seen.domains, logits=seen.logits, labels=seen.labels
)
file = Path(tempfile.mkdtemp()) / "digits.onnx"
outputs = ("probabilities", "logits", "features")
ch.torch.export_onnx(calibrated, file, images, outputs=outputs)

# %%
# The service: ONNX Runtime answers, the monitor looks on. Every day has a monitor of
# its own: news would be lost among the rows of all days before.
session = onnxruntime.InferenceSession(file)
app = FastAPI()
monitor = copy.deepcopy(expecting)


@app.post("/digit")
def digit(pixels: list[float]) -> dict:
    x = np.array([pixels], np.float32)
    p, logits, features = session.run(None, {session.get_inputs()[0].name: x})
    monitor.update(calibrator.details(logits, features))
    return {"digit": int(p.argmax()), "confidence": float(p.max())}


@app.get("/drift")
def drift() -> dict:
    signal = monitor.check()
    return {"alarm": signal.alarm, "told": str(signal)}


# %%
# Digits of a kind it knows; of a typeface that nobody has seen, but that lies between
# those it was calibrated on, which is what it was calibrated for; and from a scanner
# that gives the negative. Smaller changes go unseen: an alarm needs rows unlike every
# kind it was calibrated on, and these differ as much as rotated or noisy digits do.
client = TestClient(app)
days = {
    "known": digits.select("sans").features,
    "new typeface": digits.select("serif").features,
    "negative": 1 - digits.select("mnist").features,
}
alarms = {}
for day, rows in days.items():
    monitor = copy.deepcopy(expecting)
    answers = [client.post("/digit", json=x.tolist()).json() for x in rows[1::32]]
    sure = np.mean([answer["confidence"] for answer in answers])
    alarms[day] = client.get("/drift").json()["alarm"]
    print(f"{day}: {sure:.0%} sure; {client.get('/drift').json()['told']}")
