"""One split of the paper's protocol as one would write it without this package.

Temperatures by netcal, k-means and regressions by scikit-learn, ECE by torchmetrics on
each of the 1000 resamples (with 15 and 10 bins) and of the 1000 bootstrap draws of each
method, and the gain on each resample; only k-means is shared between methods. Shift
diagnostics and curves, which the sweep also gives, are left out.
"""

import time
import warnings
from typing import Any

import numpy as np
import torch
from netcal.scaling import TemperatureScaling
from sklearn.cluster import KMeans
from sklearn.linear_model import LinearRegression, LogisticRegression
from torchmetrics.functional.classification import multiclass_calibration_error

from coolhead.io.reading import load_archive
from coolhead.lab.images import split_large_small
from coolhead.lab.plan import Split
from coolhead.lab.protocol import EvaluationSettings, Protocol


def softmax(logits: np.ndarray) -> np.ndarray:
    shifted = logits - logits.max(axis=1, keepdims=True)
    powers = np.exp(shifted)
    return powers / powers.sum(axis=1, keepdims=True)


def temperature(logits: np.ndarray, labels: np.ndarray) -> float:
    """netcal works on probabilities and keeps the inverse."""
    model = TemperatureScaling()
    model.fit(softmax(logits.astype(np.float64)), labels)
    return 1 / float(np.ravel(model.temperature)[0])


def weighted_temperature(logits, labels, weights, loss) -> float:
    from scipy.optimize import minimize_scalar

    each = np.arange(len(labels))

    def objective(log_temperature: float) -> float:
        p = softmax(logits / np.exp(log_temperature))
        if loss == "nll":
            return float(-(weights * np.log(p[each, labels] + 1e-12)).mean())
        onehot = np.eye(p.shape[1])[labels]
        return float((weights * ((p - onehot) ** 2).sum(axis=1)).mean())

    found = minimize_scalar(objective, bounds=(-4, 4), method="bounded")
    return float(np.exp(found.x))


def importance_weights(source, target, small) -> np.ndarray:
    rows = np.concatenate([source, target])
    is_target = np.r_[np.zeros(len(source)), np.ones(len(target))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LogisticRegression().fit(rows, is_target)
    p = model.predict_proba(small)[:, 1]
    return np.clip(p / (1 - p + 1e-12) * len(source) / len(target), 0, 50)


def transcal(logits, labels, weights, target_logits) -> float:
    from scipy.optimize import minimize

    wrong = (logits.argmax(axis=1) != labels).astype(float)

    def objective(x: np.ndarray) -> float:
        error = (weights ** x[1] * wrong).mean()
        return abs(softmax(target_logits / x[0]).max(axis=1).mean() - (1 - error))

    bounds = [(1, None), (0, 1)]
    return float(minimize(objective, [2.0, 0.5], method="SLSQP", bounds=bounds).x[0])


def evaluate(logits, labels, scale, size, draws, n_bins, replace=False) -> np.ndarray:
    """ECE of each resample, probabilities and all."""
    rng = np.random.default_rng(0)
    probabilities = torch.from_numpy(softmax(logits / scale))
    targets = torch.from_numpy(labels)
    values = []
    for _ in range(draws):
        index = torch.from_numpy(rng.choice(len(labels), size, replace=replace))
        values.append(
            multiclass_calibration_error(
                probabilities[index],
                targets[index],
                num_classes=logits.shape[1],
                n_bins=n_bins,
            ).item()
        )
    return np.array(values)


def gains(logits, labels, scale, size, draws) -> np.ndarray:
    """Fall of the Brier score on each resample."""
    rng = np.random.default_rng(0)
    before, after = softmax(logits), softmax(logits / scale)
    onehot = np.eye(logits.shape[1], dtype=logits.dtype)[labels]
    values = []
    for _ in range(draws):
        index = rng.choice(len(labels), size, replace=False)
        scores = [
            ((p[index] - onehot[index]) ** 2).sum(axis=1).mean()
            for p in (before, after)
        ]
        values.append(scores[0] - scores[1])
    return np.array(values)


def usual_split(protocol: Protocol, split: Split) -> tuple[tuple, dict[str, Any]]:
    """The evaluated rows of a split and what ten methods divide their logits by."""
    path = protocol.data.pattern.format(source="+".join(split.source), seed=0)
    archive = load_archive(path)
    small = split_large_small(archive, small=protocol.division.small)

    def rows(domains, mask):
        part = archive.rows(np.isin(archive.domains, domains) & mask)
        return part.logits, part.labels, part.features.astype(np.float32)

    source, cal = rows(split.source, small), rows(split.calibration, small)
    unseen, test = rows(split.target, small), rows(split.target, ~small)
    training = rows(split.source, ~small)[2][: protocol.methods.discriminator_rows]
    scales = {"uncalibrated": 1.0}
    scales["source-only"] = temperature(*source[:2])
    scales["target-only"] = temperature(*unseen[:2])
    scales["set-level"] = t_set = temperature(*cal[:2])
    means = KMeans(protocol.methods.clusters, n_init=10, random_state=0).fit(cal[2])
    own = [
        temperature(cal[0][means.labels_ == j], cal[1][means.labels_ == j])
        for j in range(protocol.methods.clusters)
    ]
    t_near = np.array(own)[means.predict(test[2])][:, None]
    line = LinearRegression().fit(means.cluster_centers_, own)
    t_line = np.maximum(line.predict(test[2]), min(own) / 10)[:, None]
    scales |= {"nearest-cluster": t_near, "regression": t_line}
    scales["ensemble"] = 3 / (1 / t_set + 1 / t_near + 1 / t_line)
    for name in ("transcal", "wts", "cpcs"):
        weights = importance_weights(training, unseen[2], source[2])
        if name == "transcal":
            scales[name] = transcal(*source[:2], weights, unseen[0])
        else:
            loss = "nll" if name == "wts" else "brier"
            scales[name] = weighted_temperature(*source[:2], weights, loss)
    return test, scales


def usual_sweep(protocol: Protocol, splits: list[Split], draws: int) -> float:
    """CPU seconds of some splits, the usual way.

    Only `draws` of the resamples are evaluated; their time is scaled up to all, since
    one resample costs as much as another.
    """
    plan, total = protocol.evaluation, 0.0
    for split in splits:
        start = time.process_time()
        test, scales = usual_split(protocol, split)
        total += time.process_time() - start
        for scale in scales.values():
            total += _resampling_seconds(test, scale, plan, draws)
    return total


def _resampling_seconds(
    test: tuple, scale: Any, plan: EvaluationSettings, draws: int
) -> float:
    """Subsamples with two numbers of bins, gains, and bootstrap draws of all rows."""
    start = time.process_time()
    size = min(plan.size, len(test[1]))
    for n_bins in (plan.bins, plan.other_bins):
        evaluate(*test[:2], scale, size, draws, n_bins)
    gains(*test[:2], scale, size, draws)
    middle = time.process_time()
    evaluate(*test[:2], scale, len(test[1]), draws, plan.bins, replace=True)
    bootstrap = time.process_time() - middle
    return ((middle - start) * plan.draws + bootstrap * plan.bootstrap) / draws
