"""
Estimate the accuracy in a new domain
=====================================

Tweets are the new domain. Estimate the accuracy without labels, and with ten to a
hundred of them.
"""

# %%
import matplotlib.pyplot as plt

import coolhead as ch

data = ch.load_dataset("sentiment")
data = data.rows(range(0, len(data), 4))  # a quarter of the rows: quick to run
scored = ch.train_head(data, "amazon").apply(data)
seen, tweets = scored.select("movies", "nyt"), scored.select("tweets")
known = {"features": seen.features, "sample_domain": seen.domains}

cal = ch.AutoCalibrator().fit(seen.logits, seen.labels, **known)
there = ch.NewDomain(cal, tweets.logits, tweets.features)
print(there)

# %%
# Of the classifier's own predictions, without class offsets. The interval without
# labels comes from the errors on left-out domains.
counts = [0, 10, 20, 50, 100]
intervals = [there.uncorrected_accuracy]
for count in counts[1:]:
    rows = there.rows_to_label(count)
    with_labels = there.with_labels(rows, tweets.labels[rows])
    intervals.append(with_labels.uncorrected_accuracy)
    print(with_labels)

# %%
truth = (tweets.logits.argmax(axis=1) == tweets.labels).mean()
figure, axis = plt.subplots(figsize=(6.2, 3.4))
for position, found in enumerate(intervals):
    axis.vlines(position, 100 * found.low, 100 * found.high, lw=6, alpha=0.4)
    axis.plot(position, 100 * found.estimate, "o", color="C0")
axis.axhline(100 * truth, color="grey", linestyle=":")
axis.text(2.5, 100 * truth + 2, "true accuracy", ha="center", color="grey")
axis.set_xticks(range(len(counts)), map(str, counts))
axis.set(xlabel="labels of the new domain", ylabel="accuracy (%)", ylim=(0, 100))
axis.set_title("expected accuracy with its 90 % interval")
figure.tight_layout()
