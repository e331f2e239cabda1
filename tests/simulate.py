"""Simulated logits with a known best temperature. Imported by many tests."""

import numpy as np


def logits_and_labels(n, k, *, scale=1.0, spread=2.0, seed=0, dtype=np.float64):
    """Labels drawn from softmax(z0); logits scale * z0: the best T tends to `scale`."""
    rng = np.random.default_rng(seed)
    true_logits = spread * rng.normal(size=(n, k))
    labels = (true_logits + rng.gumbel(size=(n, k))).argmax(axis=1)
    return (scale * true_logits).astype(dtype), labels


def shifted_domains(n=600, k=5, d=6, seed=0, temperatures=(1.0, 2.0, 4.0)):
    """Rows of several domains, each with its own place and its own best temperature."""
    rng = np.random.default_rng(seed)
    logits, labels, features, domains = [], [], [], []
    for number, temperature in enumerate(temperatures):
        z, y = logits_and_labels(n, k, scale=temperature, seed=seed + 10 * number)
        logits.append(z)
        labels.append(y)
        features.append(rng.normal(size=(n, d)) + 6.0 * number)
        domains += [f"domain-{number}"] * n
    return (
        np.concatenate(logits),
        np.concatenate(labels),
        np.concatenate(features),
        np.array(domains),
    )
