"""
Selective prediction: answer only if confident
==============================================

If only the most confident rows are answered, how accurate are the answers? And does
calibrated confidence order the rows better than uncalibrated confidence?
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

import coolhead as ch

data = ch.load_dataset("sentiment")
data = data.rows(range(0, len(data), 4))  # a quarter of the rows: quick to run
scored = ch.train_head(data, "amazon").apply(data)
seen, tweets = scored.select("movies", "nyt"), scored.select("tweets")
known = {"features": seen.features, "sample_domain": seen.domains}

cal = ch.AutoCalibrator().fit(seen.logits, seen.labels, **known)
before, predicted = (
    ch.calibrators.Identity().fit(seen.logits, seen.labels).confidence(tweets.logits)
)
after, _ = cal.confidence(tweets.logits, tweets.features)
correct = predicted == tweets.labels

# %%
# A temperature per row may change the order of rows, and so the curve.
curves = {
    "uncalibrated": ch.metrics.risk_coverage_curve(correct, before),
    "calibrated": ch.metrics.risk_coverage_curve(correct, after),
}
for name, curve in curves.items():
    print(f"{name}: half of the rows answered, accuracy {1 - curve.risk_at(0.5):.1%}")

# %%
# On the right: the accuracy of rows above a threshold should be at least the threshold,
# above the diagonal. Uncalibrated confidence falls below it.
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6))
for name, curve in curves.items():
    curve.plot(left, label=name)
left.legend()
left.set_title("accuracy of answered rows")
for name, confidence in {"uncalibrated": before, "calibrated": after}.items():
    limits = np.quantile(confidence, np.linspace(0, 0.95, 12))
    kept = [correct[confidence >= limit].mean() for limit in limits]
    right.plot(limits, kept, "o-", label=name)
right.plot([0.35, 1], [0.35, 1], "k:", lw=1)
right.set(xlabel="threshold on the confidence", ylabel="accuracy above it")
right.set_title("accuracy above a threshold")
right.legend()
figure.tight_layout()
