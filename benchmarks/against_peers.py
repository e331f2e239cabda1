"""Ours against the peers: the same work, one run, CPU seconds and ratios.

    python benchmarks/against_peers.py [--quick] [--json FILE]

torch-uncertainty is left out: its pins (scikit-learn < 1.7, torchvision) clash with the
CPU build of torch used here; its predict_proba is the plain torch softmax shown below.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
from origin import print_origin
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator

import coolhead as ch
from coolhead.numerics.moments import row_moments, summarise_rows


class Scores(ClassifierMixin, BaseEstimator):
    """A classifier whose decision function is its input."""

    def fit(self, X, y):
        self.classes_ = np.arange(X.shape[1])
        return self

    def decision_function(self, X):
        return X

    def predict(self, X):
        return X.argmax(axis=1)


def measure(
    work: Callable, repeats: int
) -> tuple[list[float], list[float], float, object]:
    """CPU and wall seconds of every repetition, extra peak memory in MB, the result."""
    seconds, wall, result, memory = [], [], None, []
    for _ in range(repeats):
        before = _resident()
        _reset_peak()
        start, clock = time.process_time(), time.perf_counter()
        result = work()
        seconds.append(time.process_time() - start)
        wall.append(time.perf_counter() - clock)
        memory.append(_peak() - before)
    return seconds, wall, max(min(memory), 0.0), result


def _status(field: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1024
    return float("nan")


def _resident() -> float:
    return _status("VmRSS")


def _peak() -> float:
    return _status("VmHWM")


def _reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def simulated(n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    logits = 2 * rng.standard_normal((n, k), dtype=np.float32)
    labels = np.empty(n, int)
    for rows in np.array_split(np.arange(n), 50):
        labels[rows] = (logits[rows] + rng.gumbel(size=(len(rows), k))).argmax(axis=1)
    return 2.5 * logits, labels


def scikit_learn(logits: np.ndarray, labels: np.ndarray):
    model = CalibratedClassifierCV(
        FrozenEstimator(Scores().fit(logits, labels)), method="temperature"
    )
    return model.fit(logits, labels)


def scikit_learn_temperature(logits: np.ndarray, labels: np.ndarray) -> float:
    fitted = scikit_learn(logits, labels).calibrated_classifiers_[0]
    return float(1 / fitted.calibrators[0].beta_)


def probmetrics(logits: np.ndarray, labels: np.ndarray):
    from probmetrics.calibrators import get_calibrator

    return get_calibrator("temp-scaling").fit(softmax(logits, axis=1), labels)


def implied_temperature(calibrator, logits: np.ndarray) -> float:
    """T from the change of log-odds between the two largest of one row."""
    row = softmax(logits[:1].astype(np.float64), axis=1)
    out = np.log(np.asarray(calibrator.predict_proba(row.astype(np.float32))))[0]
    first, second = np.argsort(-logits[0])[:2]
    return float((logits[0, first] - logits[0, second]) / (out[first] - out[second]))


def netcal_temperature(logits: np.ndarray, labels: np.ndarray) -> float:
    from netcal.scaling import TemperatureScaling

    model = TemperatureScaling()
    model.fit(softmax(logits.astype(np.float64), axis=1), labels)
    return float(1 / np.ravel(model.temperature)[0])


def best_temperature(logits: np.ndarray, labels: np.ndarray) -> float:
    """The minimum by a solver that is not ours, in double precision."""
    own = logits[np.arange(len(logits)), labels]

    def loss(log_inverse: float) -> float:
        b = np.exp(log_inverse)
        parts = np.array_split(np.arange(len(logits)), 50)
        total = sum(logsumexp(b * logits[i], axis=1).sum() for i in parts)
        return float(total - b * own.sum()) / len(logits)

    found = minimize_scalar(
        loss, bounds=(-3, 2), method="bounded", options={"xatol": 1e-9}
    )
    return float(np.exp(-found.x))


def one_temperature(n: int, k: int, repeats: int) -> list[dict]:
    logits, labels = simulated(n, k)
    labels[:k] = np.arange(k)  # scikit-learn wants every class to be there
    double = logits.astype(np.float64)
    best = best_temperature(double, labels)
    rows = summarise_rows(logits, labels, scores=False)
    inverse = np.full(n, 0.4)
    one_pass, *_ = measure(lambda: row_moments(rows, inverse), repeats)
    work = {
        "coolhead": lambda: ch.fit_temperature(logits, labels).temperature,
        "coolhead, float64": lambda: ch.fit_temperature(double, labels).temperature,
        "scikit-learn": lambda: scikit_learn_temperature(logits, labels),
        "scikit-learn, float64": lambda: scikit_learn_temperature(double, labels),
        "probmetrics": lambda: implied_temperature(probmetrics(logits, labels), logits),
        "netcal": lambda: netcal_temperature(logits, labels),
    }
    title = f"one temperature, {n:,}×{k} float32"
    table = _table(title, work, repeats, lambda t: abs(t / best - 1))
    table[0]["passes"] = table[0]["cpu_s"] / median(one_pass)
    return table


def nine_clusters(n: int, k: int, repeats: int) -> list[dict]:
    logits, labels = simulated(n, k)
    groups = np.random.default_rng(1).integers(0, 9, n)
    double = logits.astype(np.float64)
    best = ch.fit_temperature(double, labels, groups=groups).temperature

    def private_loop():
        from sklearn.calibration import _TemperatureScaling

        return [
            1
            / _TemperatureScaling().fit(double[groups == g], labels[groups == g]).beta_
            for g in range(9)
        ]

    work = {
        "coolhead": lambda: (
            ch.fit_temperature(logits, labels, groups=groups).temperature
        ),
        "coolhead, one temperature": lambda: np.full(
            9, ch.fit_temperature(logits, labels).temperature
        ),
        "scikit-learn's private class, in a loop": private_loop,
    }
    return _table(
        f"nine clusters, {n:,}×{k} float32",
        work,
        repeats,
        lambda t: float(np.abs(np.ravel(t) / best - 1).max()),
    )


def confidences(n: int, k: int, repeats: int) -> list[dict]:
    import torch

    logits, labels = simulated(n, k)
    few, their = logits[: 3 * k], labels[: 3 * k].copy()
    their[:k] = np.arange(k)  # scikit-learn wants every class to be there
    ours = ch.TemperatureScaling().fit(few, their)
    learned, peer = scikit_learn(few, their), probmetrics(few, their)
    given = softmax(logits, axis=1)
    tensor = torch.from_numpy(logits)
    work = {
        "coolhead, confidence": lambda: ours.confidence(logits),
        "coolhead, predict_proba": lambda: ours.predict_proba(logits),
        "torch softmax": lambda: torch.softmax(tensor / ours.temperature_, 1),
        "probmetrics, predict_proba": lambda: peer.predict_proba(given),
        "scikit-learn, predict_proba": lambda: learned.predict_proba(logits),
    }
    return _table(f"confidence, {n:,}×{k} float32", work, repeats)


def resamples(n: int, size: int, draws: int, repeats: int) -> list[dict]:
    from relplot.metrics import binnedECE

    rng = np.random.default_rng(0)
    confidence = rng.beta(5, 2, n)
    correct = (rng.random(n) < confidence**1.3).astype(float)
    drawn = ch.metrics.draw_subsamples(n, size, draws, random_state=0)
    index = [rng.choice(n, size, replace=False) for _ in range(draws)]
    work = {
        "coolhead, given the draws": lambda: ch.metrics.subsample_ece(
            correct, confidence, draws=drawn
        ),
        "coolhead, with drawing": lambda: ch.metrics.subsample_ece(
            correct,
            confidence,
            draws=ch.metrics.draw_subsamples(n, size, draws, random_state=0),
        ),
        "relplot, given the draws": lambda: [
            binnedECE(confidence[i], correct[i], nbins=15) for i in index
        ],
    }
    return _table(f"{draws} resamples of {size:,} out of {n:,}, ECE", work, repeats)


def calibration_error(n: int, repeats: int) -> list[dict]:
    from relplot.metrics import binnedECE

    rng = np.random.default_rng(0)
    confidence = rng.beta(5, 2, n)
    correct = rng.random(n) < confidence**1.3
    numbers = correct.astype(float)
    work = {
        "coolhead": lambda: ch.expected_calibration_error(correct, confidence),
        "relplot": lambda: binnedECE(confidence, numbers, nbins=15),
    }
    return _table(f"ECE of {n:,}", work, repeats)


def _table(title, work, repeats, error=None) -> list[dict]:
    rows = []
    for name, function in work.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            seconds, wall, memory, result = measure(function, repeats)
        row = {"work": title, "who": name, "memory_mb": memory}
        row |= {"cpu_s": median(seconds), "best_s": min(seconds)}
        row |= {"wall_s": median(wall), "n": len(seconds)}
        if error is not None:
            row["error_of_T"] = float(error(result))
        rows.append(row)
    for row in rows:
        row["ratio"] = row["cpu_s"] / rows[0]["cpu_s"]
    return rows


def markdown(rows: list[dict]) -> str:
    lines, title = [], None
    for row in rows:
        if row["work"] != title:
            title = row["work"]
            lines += ["", f"### {title}", ""]
            lines += ["| | CPU s | best | wall s | of | × ours | MB | error of T |"]
            lines += ["|---|---|---|---|---|---|---|---|"]
        error = f"{row['error_of_T']:.0e}" if "error_of_T" in row else ""
        name = row["who"] + (
            f" ({row['passes']:.1f} passes)" if "passes" in row else ""
        )
        lines.append(
            f"| {name} | {row['cpu_s']:.4f} | {row['best_s']:.4f} | "
            f"{row['wall_s']:.4f} | {row['n']} | {row['ratio']:.2f} | "
            f"{row['memory_mb']:.0f} | {error} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    parser.add_argument("--json", type=Path, help="also write the rows here")
    parser.add_argument("--only", choices=["ece"], help="one piece of work alone")
    options = parser.parse_args()
    part = 10 if options.quick else 1
    print_origin()
    print("Medians, the best beside them, and of how many; MB beyond the data.")
    rows = []
    if options.only is None:
        rows += one_temperature(50_000 // part, 1000, 5)
        rows += nine_clusters(20_000 // part, 345, 7)
        rows += confidences(50_000 // part, 1000, 7)
        rows += resamples(100_000 // part, 10_000 // part, 1000, 7)
    rows += calibration_error(1_000_000 // part, 21)
    print(markdown(rows))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
