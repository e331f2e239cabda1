"""
A zero-shot classifier
======================

Models like CLIP compare an input with a prompt for each class; cosine similarities
times a scale are the logits. The scale, 100 in CLIP, was learned for another task, so
the confidence needs calibration. Here for texts, embedded by a sentence encoder
(all-MiniLM-L6-v2).
"""

# %%
# Embeddings of length one, and for each class the mean of a few examples of it, as
# prompts are averaged for CLIP. Nothing is trained.
import matplotlib.pyplot as plt
import numpy as np
from scipy.special import softmax

import coolhead as ch

texts = ch.load_dataset("sentiment")


def unit(rows):
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


embedded = unit(texts.features - texts.features.mean(axis=0))
is_prompt = np.zeros(len(texts), bool)
for code in range(3):
    is_prompt[np.flatnonzero(texts.labels == code)[:20]] = True
groups = [embedded[is_prompt & (texts.labels == code)] for code in range(3)]
prompts = unit(np.array([group.mean(axis=0) for group in groups]))
logits = 100 * embedded @ prompts.T

# %%
# Each domain is the new one once; the calibrator is fitted on a few hundred labelled
# texts of each of the others. The embeddings are the features.
rng = np.random.default_rng(0)
ece = {}
figure, axes = plt.subplots(1, 4, figsize=(12, 3.2), layout="constrained")
for target, axis in zip(texts.domain_names, axes, strict=True):
    others = np.flatnonzero((texts.domains != target) & ~is_prompt)
    seen, new = rng.choice(others, 1500, replace=False), texts.domains == target
    calibrator = ch.AutoCalibrator().fit(
        logits[seen],
        texts.labels[seen],
        features=embedded[seen],
        sample_domain=texts.domains[seen],
    )
    before = softmax(logits[new], axis=1)
    after = calibrator.predict_proba(logits[new], embedded[new])
    ece[target] = [
        ch.expected_calibration_error(texts.labels[new], p) for p in (before, after)
    ]
    right = np.mean(before.argmax(axis=1) == texts.labels[new])
    print(
        f"{target}: accuracy {right:.0%}, mean confidence "
        f"{before.max(axis=1).mean():.0%} before, "
        f"{after.max(axis=1).mean():.0%} after; T = {calibrator.temperature_:.0f}, "
        f"ECE {ece[target][0]:.2f} → {ece[target][1]:.2f}"
    )
    ch.reliability_curve(texts.labels[new], after).plot(axis)
    axis.set_title(target)
