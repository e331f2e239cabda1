"""
What abstaining saves
=====================

If only the surest rows are answered, how often are the answers right? And does the
calibrated confidence order rows of several domains better than the raw one?
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
    print(f"{name}: half of the rows answered, {1 - curve.risk_at(0.5):.1%} right")

# %%
# On the right: rows at least so sure should be right at least so often, which is above
# the diagonal. A raw confidence that falls below it promises more than it keeps.
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6))
for name, curve in curves.items():
    curve.plot(left, label=name)
left.legend()
left.set_title("accuracy of the rows answered")
for name, sure in {"uncalibrated": before, "calibrated": after}.items():
    limits = np.quantile(sure, np.linspace(0, 0.95, 12))
    kept = [correct[sure >= limit].mean() for limit in limits]
    right.plot(limits, kept, "o-", label=name)
right.plot([0.35, 1], [0.35, 1], "k:", lw=1)
right.set(xlabel="answered if at least so sure", ylabel="accuracy of those")
right.set_title("a threshold that means what it says")
right.legend()
figure.tight_layout()
