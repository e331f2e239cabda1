"""
A PyTorch network as a service with a drift monitor
===================================================

A network and its data loaders, calibrated in one call, exported to ONNX, served one row
at a time without torch, with a drift monitor in the loop.
"""

# %%
# A network for digits of one kind, calibrated on rows it was not trained on.
import copy
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import onnxruntime
import torch
from fastapi import FastAPI
from fastapi.testclient import TestClient
from torch.utils.data import DataLoader, TensorDataset

import coolhead as ch

torch.manual_seed(0)
rng = np.random.default_rng(0)
digits = ch.load_dataset("digits")
digits = digits.rows(rng.permutation(len(digits)))


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
# Calibrate and export. One monitor raises an alarm if rows differ from the calibration
# domains more than these differ from each other; the other expects the domain `served`.
held_out = {
    "mnist": loader("mnist", 1, 8),
    "sans": loader("sans", 0, 8),
    "uci": loader("uci", 0, 3),
}
calibrated = ch.torch.calibrate(net, held_out)
calibrator = calibrated.softmax.calibrator
seen = ch.torch.collect_predictions(net, held_out)
rows = (calibrator, seen.features, seen.domains)
scored = {"logits": seen.logits, "labels": seen.labels}
expecting = {
    "any domain": ch.DriftMonitor.for_calibrator(*rows, **scored),
    "served": ch.DriftMonitor.for_calibrator(*rows, **scored, served="mnist"),
}
file = Path(tempfile.mkdtemp()) / "digits.onnx"
outputs = ("probabilities", "logits", "features")
ch.torch.export_onnx(calibrated, file, images, outputs=outputs)

# %%
# The service runs ONNX Runtime and updates the monitors, which are reset every day.
session = onnxruntime.InferenceSession(file)
app = FastAPI()
monitors = copy.deepcopy(expecting)


@app.post("/digit")
def digit(pixels: list[float]) -> dict:
    x = np.array([pixels], np.float32)
    p, logits, features = session.run(None, {session.get_inputs()[0].name: x})
    details = calibrator.details(logits, features)
    for monitor in monitors.values():
        monitor.update(details)
    return {"digit": int(p.argmax()), "confidence": float(p.max())}


@app.get("/drift")
def drift() -> dict:
    signals = {name: monitor.check() for name, monitor in monitors.items()}
    return {name: {"alarm": s.alarm, "text": str(s)} for name, s in signals.items()}


# %%
# Usual digits, a noisy camera, an unseen typeface, and a scanner that inverts images.
# Noise and typeface differ from the served domain, but not more than the calibration
# domains differ from each other. The inverted images do.
client = TestClient(app)
mnist = digits.select("mnist").features[3::8]
days = {
    "usual": mnist,
    "noisy": np.clip(mnist + rng.normal(scale=0.4, size=mnist.shape), 0, 1),
    "new typeface": digits.select("serif").features,
    "negative": 1 - mnist,
}
alarms, shares = {}, {}
for day, images in days.items():
    monitors = copy.deepcopy(expecting)
    answers = [client.post("/digit", json=x.tolist()).json() for x in images[:200]]
    mean = shares[day] = np.mean([answer["confidence"] for answer in answers])
    found = client.get("/drift").json()
    alarms[day] = [name for name, signal in found.items() if signal["alarm"]]
    print(f"{day}: mean confidence {mean:.0%}, alarms {alarms[day]}")
    print(found["served"]["text"])

# %%
# Twelve digits of each day, the mean confidence, and the monitors that raised an alarm.
fig, axes = plt.subplots(1, len(days), figsize=(9, 3), layout="constrained")
for ax, (day, images) in zip(axes, days.items(), strict=True):
    tiles = images[:12].reshape(4, 3, 16, 16).transpose(0, 2, 1, 3).reshape(64, 48)
    ax.imshow(tiles, cmap="gray", vmin=0, vmax=1)
    text = "no alarm" if not alarms[day] else "alarm: " + ", ".join(alarms[day])
    ax.set_title(f"{day}\n{100 * shares[day]:.0f} % confidence\n{text}")
    ax.set_axis_off()
