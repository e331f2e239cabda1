"""What calibration costs at run time: its ONNX graph against the backbone's.

Both run in onnxruntime on the CPU, at batch 32, alternating 30 times; medians.

    python benchmarks/onnx_cost.py
"""

import argparse
import time
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnxruntime
import torch

from coolhead.baselines.density_aware import DensityAwareTemperature
from coolhead.baselines.multidomain import MultiDomainTemperature
from coolhead.baselines.parametric import ParameterizedTemperature
from coolhead.calibrators.auto import AutoCalibrator
from coolhead.calibrators.clustered import (
    NearestClusterTemperature,
    RegressedTemperature,
)
from coolhead.calibrators.ensemble import TemperatureEnsemble
from coolhead.calibrators.shift_aware import ShiftAwareTemperature
from coolhead.calibrators.temperature import TemperatureScaling
from coolhead.lab.images import load_backbone
from coolhead.torch import export_onnx

N_CLASSES, N_FEATURES, N_ROWS = 345, 1280, 3000
METHODS = {
    "set-level": TemperatureScaling(),
    "nearest cluster": NearestClusterTemperature(9, n_init=1),
    "regression": RegressedTemperature(9, n_init=1),
    "ensemble": TemperatureEnsemble(n_clusters=9),
    "multi-domain (MD-TS)": MultiDomainTemperature(),
    "shift-aware": ShiftAwareTemperature(penalty=8.0),
    "automatic": AutoCalibrator(),
    "parametric (PTS)": ParameterizedTemperature(max_iter=20),
    "density-aware (DAC)": DensityAwareTemperature(max_reference=2000),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--runs", type=int, default=30)
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        measure(Path(folder), options.batch, options.runs)


def measure(folder: Path, batch: int, runs: int) -> None:
    rows = simulate()
    backbone = folder / "backbone.onnx"
    export_backbone(backbone)
    images = np.random.default_rng(0).normal(size=(batch, 3, 224, 224))
    network = session(backbone), {"image": images.astype(np.float32)}
    print(f"batch {batch}, {N_CLASSES} classes, {N_FEATURES} features, {runs} runs")
    for name, calibrator in METHODS.items():
        calibrator.fit(**rows)
        path = export_onnx(calibrator, folder / "calibrator.onnx")
        inputs = {"logits": rows["logits"][:batch]}
        if calibrator.uses_features:
            inputs["features"] = rows["features"][:batch]
        ours, theirs = alternate((session(path), inputs), network, runs)
        print(
            f"{name:22s} {1e3 * ours:8.3f} ms  backbone {1e3 * theirs:8.1f} ms  "
            f"{ours / theirs:.3%}"
        )


def simulate() -> dict:
    rng = np.random.default_rng(1)
    features = np.abs(rng.normal(size=(N_ROWS, N_FEATURES))).astype(np.float32)
    honest = rng.normal(scale=2, size=(N_ROWS, N_CLASSES))
    labels = (honest + rng.gumbel(size=honest.shape)).argmax(axis=1)
    return {
        "logits": (2 * honest).astype(np.float32),
        "labels": labels,
        "features": features,
        "sample_domain": rng.integers(0, 3, N_ROWS),
    }


def export_backbone(path: Path) -> None:
    module = load_backbone("efficientnet-lite0", n_classes=N_CLASSES).module.eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module,
            (torch.zeros(2, 3, 224, 224),),
            path,
            dynamo=False,
            input_names=["image"],
            dynamic_axes={"image": {0: "batch"}},
        )


def session(path: Path) -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])


def alternate(first: tuple, second: tuple, runs: int) -> tuple[float, float]:
    """Median seconds of each, run in turn so that both meet the same machine."""
    seconds: tuple[list, list] = ([], [])
    for _ in range(runs + 2):
        for (graph, inputs), taken in zip((first, second), seconds, strict=True):
            start = time.perf_counter()
            graph.run(None, inputs)
            taken.append(time.perf_counter() - start)
    return tuple(float(np.median(taken[2:])) for taken in seconds)  # type: ignore


if __name__ == "__main__":
    main()
