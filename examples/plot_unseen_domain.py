"""
Calibrate for an unseen domain
==============================

A sentiment classifier is trained on Amazon reviews and calibrated on labelled movie
reviews and newspaper comments. Tweets are the unseen domain; their labels are used only
for evaluation.
"""

# %%
import matplotlib.pyplot as plt

import coolhead as ch

data = ch.load_dataset("sentiment")
data = data.rows(range(0, len(data), 4))  # a quarter of the rows: quick to run
scored = ch.train_head(data, "amazon").apply(data)
seen, tweets = scored.select("movies", "nyt"), scored.select("tweets")

# %%
# Each method learns a temperature T(x) > 0 that divides the logits.
methods = {
    "uncalibrated": ch.calibrators.Identity(),
    "set-level": ch.TemperatureScaling(),
    "nearest cluster": ch.NearestClusterTemperature(8),
    "ensemble": ch.TemperatureEnsemble(n_clusters=8),
}
confidence = {}
for name, method in methods.items():
    method.fit(
        seen.logits,
        seen.labels,
        features=seen.features,
        sample_domain=seen.domains,
    )
    confidence[name], predicted = method.confidence(tweets.logits, tweets.features)

# %%
# The predicted class is the same for all of them; only the confidence differs.
correct = predicted == tweets.labels
print(f"accuracy {correct.mean():.3f}")
for name, found in confidence.items():
    error = ch.expected_calibration_error(correct, found)
    print(f"{name:16} mean confidence {found.mean():.3f}  ECE {100 * error:.1f} %")

# %%
# Is the difference significant? The rows are the same, so the comparison is paired.
result = ch.paired_bootstrap(correct, confidence, baseline="uncalibrated")
for name, difference in result.differences.items():
    print(f"{name:16} ECE minus uncalibrated: {difference}")

# %%
figure, axes = plt.subplots(1, 4, figsize=(14, 3.6), sharey=True)
for axis, (name, found) in zip(axes, confidence.items(), strict=True):
    ch.reliability_curve(correct, found).plot(axis)
    axis.set_title(name)
figure.tight_layout()
