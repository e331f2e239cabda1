"""Random temperature problems, and a solver that is not ours."""

import numpy as np
from scipy.optimize import brentq
from scipy.special import softmax

LOPSIDED = ("ties", "one column", "steps")
MASKS = {"none": None, "infinity": -np.inf, "huge": -1e9, "smallest": "smallest"}


def random_problem(seed, n, k, *, ties, mask, log_scale, weighted):
    """Logits with labels drawn at a random temperature; labels are never masked."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, k)) * rng.choice([0.3, 2.0, 10.0])
    if ties:
        z = np.round(2 * z) / 2
    z[:, 0] += rng.choice([0.0, 0.0, 5.0])
    sharpness = 10 ** rng.uniform(-1.5, 1)
    y = (sharpness * z + rng.gumbel(size=z.shape)).argmax(axis=1)
    masked = np.zeros(z.shape, bool)
    if mask is not None:
        masked = rng.random(z.shape) < rng.choice([0.1, 0.5])
        masked[np.arange(n), y] = False
        if mask != -np.inf:
            # [3, -1e9] may be a confident row: two classes are left in every row.
            masked[np.arange(n), (y + 1) % k] = False
    scale = 10.0**log_scale
    z *= scale
    value = -np.finfo(np.float64).max if mask == "smallest" else mask
    if mask is not None:
        z[masked] = value * scale if value == -1e9 else value
    weights = rng.exponential(size=n) if weighted else None
    return z, y, masked, weights


def oracle(z, y, masked, weights):
    """(status, T or NaN, typical spread), over the classes that are there."""
    visible = np.isneginf(z[masked]).all()
    z = np.where(masked, -np.inf, z)
    drops = z.max(axis=1, keepdims=True) - z
    shifted = np.where(masked, 0.0, -drops)
    share = np.ones(len(y)) if weights is None else weights
    share = share / share.sum()
    gap = drops[np.arange(len(y)), y]
    mean = -shifted.sum(axis=1) / (~masked).sum(axis=1)
    if not mean.any():
        # Nothing distinguishes a finite mask from a logit where all others are equal.
        return "constant_logits" if visible else "perfectly_separated", np.nan, 1.0
    some = mean > 0
    spread = np.exp(np.average(np.log(mean[some]), weights=share[some]))
    if not gap.any():
        return "perfectly_separated", np.nan, spread
    slope_at_zero = share @ (gap - mean)
    if abs(slope_at_zero) < 1e-12 * spread:
        return "beyond", np.nan, spread  # a matter of rounding
    if slope_at_zero >= 0:
        return "worse_than_uniform", np.nan, spread

    def slope(log_inverse):
        b = np.exp(log_inverse) / spread
        p = softmax(-b * drops, axis=1)
        return share @ ((p * shifted).sum(axis=1) + gap) / spread

    if slope(-20) >= 0 or slope(20) <= 0:
        return "beyond", np.nan, spread
    root = brentq(slope, -20, 20, xtol=1e-13)
    return "converged", spread / np.exp(root), spread


def disagreement(fit, status, best, spread):
    """What is wrong with a fit, by the oracle; None if nothing is."""
    if not (fit.temperature > 0 and np.isfinite([fit.temperature, fit.nll]).all()):
        return f"T = {fit.temperature}, loss {fit.nll}"
    if status == "converged" and 1 / 30 < best / spread < 30:
        wanted = {"converged"}
    elif status in ("converged", "beyond"):
        # The solver searches in a range of its own, and says where that ends.
        wanted = {"converged", "at_bound", "worse_than_uniform"}
    else:
        wanted = {status}
    if fit.status in wanted:
        return None
    return f"status {fit.status}, wanted {' or '.join(sorted(wanted))}"


def lopsided_problem(seed, kind, n_rows=120, n_classes=1000):
    """Many classes, most of them alike or far below one of them; float32."""
    rng = np.random.default_rng(seed)
    if kind == "ties":
        z = np.zeros((n_rows, n_classes))
        z[:, 0] = 10 ** rng.uniform(-1, 1)
    elif kind == "one column":
        z = np.round(rng.normal(size=(n_rows, n_classes)))
        z[:, 0] = z.max() + rng.uniform(0, 0.5)
    else:
        z = rng.normal(size=(n_rows, n_classes)) * 10 ** rng.uniform(-1, 1)
        z = np.round(2 * z) / 2
    z = z.astype(np.float32)
    y = (z * 10 ** rng.uniform(-1.5, 0.3) + rng.gumbel(size=z.shape)).argmax(axis=1)
    return z, y
