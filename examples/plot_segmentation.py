"""
Semantic segmentation: calibrate every pixel
============================================

A classifier of handwritten digits labels every pixel of a scene. Its confidence should
also be right for scenes of another kind. Pixels are rows with features, taken from a
coarser map.
"""

# %%
# A classifier of digits, with its logits and features of every digit.
import matplotlib.pyplot as plt
import numpy as np
from scipy.special import softmax

import coolhead as ch
from coolhead.models import dense_rows, predict_dense

digits = ch.load_dataset("digits")
digits = digits.rows(np.random.default_rng(0).permutation(len(digits))[:6000])
scored = ch.train_head(digits, "mnist", kind="mlp").apply(digits)
BACKGROUND, FAINT = 10, 255


# %%
# Scenes of four tiles, most of them with a digit. Pixels without ink are background;
# faint pixels have a label that is ignored, as borders of annotations do.
def scenes(domain, count):
    """Images (n, 32, 32), logits (n, 11, 32, 32), features (n, d, 2, 2), labels."""
    rows, seen = scored.select(domain), digits.select(domain)
    rng = np.random.default_rng(1)
    chosen = rng.integers(len(rows), size=(count, 2, 2))
    shown = rng.random((count, 2, 2, 1, 1)) < 0.8
    ink = seen.features[chosen].reshape(count, 2, 2, 16, 16) * shown
    image = np.swapaxes(ink, 2, 3).reshape(count, 32, 32)
    logits = np.moveaxis(rows.logits[chosen], -1, 1).repeat(16, 2).repeat(16, 3)
    logits -= np.log(np.exp(logits).sum(axis=1, keepdims=True))
    background = 4 - 12 * image[:, None]
    labels = rows.labels[chosen].repeat(16, 1).repeat(16, 2)
    labels = np.where(image > 0.5, labels, np.where(image < 0.1, BACKGROUND, FAINT))
    features = np.moveaxis(rows.features[chosen], -1, 1)
    return image, np.concatenate([logits, background], axis=1), features, labels


# %%
# Calibrate on a few thousand pixels of scenes of two other domains.
parts = []
for domain in ("uci", "sans"):
    _, logits, features, labels = scenes(domain, 100)
    rows = dense_rows(logits, labels, features=features, ignore_index=FAINT, most=4000)
    parts.append((rows.logits, rows.labels, rows.features, [domain] * 4000))
logits, labels, features, domains = map(np.concatenate, zip(*parts, strict=True))
# `AutoCalibrator` works, too, and warns that two left-out domains disagree.
calibrator = ch.ShiftAwareTemperature()
calibrator.fit(logits, labels, features=features, sample_domain=domains)

# %%
# Evaluate on an unseen typeface. Probabilities have the shape of the logits.
image, logits, features, labels = scenes("serif", 100)
confidence = {
    "uncalibrated": softmax(logits, axis=1),
    "calibrated": predict_dense(calibrator, logits, features),
}
ece = {}
for name, probabilities in confidence.items():
    rows = dense_rows(probabilities, labels, ignore_index=FAINT)
    inked = rows.labels != BACKGROUND
    of_rows = rows.labels[inked], rows.logits[inked]
    ece[name] = ch.expected_calibration_error(*of_rows)
    right = np.mean(of_rows[1].argmax(axis=1) == of_rows[0])
    print(f"{name}: {right:.0%} of the pixels with ink correct, ECE {ece[name]:.3f}")

# %%
# The confidence of every pixel, in four scenes.
figure, axes = plt.subplots(3, 4, figsize=(7, 5.4), layout="constrained")
pictures = {"scene": image} | {n: p.max(axis=1) for n, p in confidence.items()}
for line, (name, picture) in zip(axes, pictures.items(), strict=True):
    line[0].set_ylabel(name)
    for axis, one in zip(line, picture, strict=False):
        axis.imshow(one, vmin=0, vmax=1, cmap="gray" if name == "scene" else None)
        axis.set(xticks=[], yticks=[])
