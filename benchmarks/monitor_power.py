"""How often the drift monitor raises the alarm at distorted digits, and at others.

    python benchmarks/monitor_power.py [NETWORKS]

Markdown on standard output; experiments/monitor-power.md is kept so.
"""

import copy
import sys
from collections import defaultdict

import numpy as np
import torch
from origin import print_origin
from scipy.ndimage import gaussian_filter, rotate

import coolhead as ch

TRAINED, STEPS = "mnist", {"mnist": 8, "sans": 8, "uci": 3}
BATCHES = {75: 14, 300: 3}
KINDS = ("default", "served")
DISTORTED = 3  # batches of each size; all of them as they are


def distortions(x, rng):
    images = x.reshape(-1, 16, 16)
    yield "as they are", x
    yield "negative", 1 - x
    yield "random pixels", rng.random(x.shape)
    for width in (2, 1):
        yield f"blurred ({width} px)", gaussian_filter(images, (0, width, width))
    yield "rotated by 45°", rotate(images, 45, axes=(1, 2), reshape=False, order=1)
    yield "a third of the contrast", 0.3 * x
    yield "upper half missing", images * (np.arange(16) > 7)[:, None]
    for scale in (0.5, 0.3):
        noisy = np.clip(x + rng.normal(0, scale, x.shape), 0, 1)
        yield f"noise of {scale}", noisy


def train(rows):
    hidden = [torch.nn.Linear(256, 64), torch.nn.ReLU()]
    net = torch.nn.Sequential(*hidden, torch.nn.Linear(64, 10))
    adam = torch.optim.Adam(net.parameters(), lr=3e-3)
    x, y = torch.tensor(rows.features), torch.tensor(rows.labels)
    for _ in range(5):
        for part in torch.randperm(len(x)).split(100):
            adam.zero_grad()
            torch.nn.functional.cross_entropy(net(x[part]), y[part]).backward()
            adam.step()
    return net


def predict(net, x):
    with torch.no_grad():
        hidden = net[:2](torch.tensor(x.reshape(-1, 256), dtype=torch.float32))
        return net[2](hidden).numpy(), hidden.numpy()


def measure(seed, alarms):
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    digits = ch.load_dataset("digits")
    digits = digits.rows(rng.permutation(len(digits)))
    net = train(digits.select(TRAINED).rows(slice(0, None, 2)))
    kept = {}
    for domain, step in STEPS.items():
        rows = digits.select(domain)
        own = np.arange(1 if domain == TRAINED else 0, len(rows), step)
        free = np.arange(len(rows))
        free = free[free % 2 == 1] if domain == TRAINED else free
        kept[domain] = rows.rows(own), rows.rows(np.setdiff1d(free, own))
    seen = [pair[0] for pair in kept.values()]
    domains = np.repeat(list(kept), [len(part) for part in seen])
    labels = np.concatenate([part.labels for part in seen])
    logits, features = predict(net, np.concatenate([part.features for part in seen]))
    cal = ch.TemperatureEnsemble().fit(logits, labels, features=features)
    for domain, (_, new) in kept.items():
        for served in (None, domain):
            expecting = ch.DriftMonitor.for_calibrator(
                cal, features, domains, logits=logits, labels=labels, served=served
            )
            for size, batches in BATCHES.items():
                for batch in range(batches):
                    x = new.features[batch * size : (batch + 1) * size]
                    for name, distorted in distortions(x, rng):
                        if batch >= DISTORTED and distorted is not x:
                            continue
                        monitor = copy.deepcopy(expecting)
                        monitor.update(cal.details(*predict(net, distorted)))
                        case = name, "served" if served else "default", size
                        alarms[case].append(monitor.check().alarm is True)


if __name__ == "__main__":
    networks = int(sys.argv[1]) if len(sys.argv) > 1 else 12
    alarms = defaultdict(list)
    for seed in range(networks):
        measure(seed, alarms)
    print_origin()
    head = [f"{kind}, {size}" for kind in KINDS for size in BATCHES]
    print("| rows | " + " | ".join(head) + " |\n|---|" + "---|" * len(head))
    for name in dict.fromkeys(name for name, _, _ in alarms):
        cells = [
            f"{np.mean(alarms[name, kind, size]):.1%} of "
            f"{len(alarms[name, kind, size])}"
            for kind in KINDS
            for size in BATCHES
        ]
        print(f"| {name} | {' | '.join(cells)} |")
