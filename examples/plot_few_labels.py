"""
Few labels of a new domain
==========================

Temperature scaling on a handful of labels is noisy. Correcting a calibrator that was
fitted on other domains needs fewer labels.
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

# %%
# Labels come from the first half of the tweets; the second half is for evaluation.
# Eight draws.
half = len(tweets) // 2
batch, test = tweets.rows(slice(0, half)), tweets.rows(slice(half, None))


def error(method):
    probabilities = method.predict_proba(test.logits, test.features)
    return 100 * ch.expected_calibration_error(test.labels, probabilities)


counts = [10, 20, 50, 100]
updated, alone = np.empty((2, 8, len(counts)))
for draw in range(8):
    there = ch.NewDomain(cal, batch.logits, batch.features, random_state=draw)
    generator = np.random.default_rng(draw)
    for column, count in enumerate(counts):
        rows = there.rows_to_label(count)
        with_labels = there.with_labels(rows, batch.labels[rows])
        updated[draw, column] = error(with_labels.calibrator)
        rows = generator.choice(half, count, replace=False)
        plain = ch.TemperatureScaling().fit(batch.logits[rows], batch.labels[rows])
        alone[draw, column] = error(plain)

# %%
figure, axis = plt.subplots(figsize=(6.2, 3.6))
for name, errors in {
    "labels and domains": updated,
    "labels alone": alone,
}.items():
    (line,) = axis.plot(counts, np.median(errors, axis=0), "o-", label=name)
    axis.fill_between(
        counts, errors.min(0), errors.max(0), alpha=0.15, color=line.get_color()
    )
axis.axhline(error(cal), color="grey", linestyle=":", label="no labels")
axis.set(xscale="log", xlabel="labels of the new domain", ylabel="ECE (%)")
axis.set_xticks(counts, map(str, counts))
axis.minorticks_off()
axis.set(ylim=(0, None), title="median and range of eight draws")
axis.legend()
figure.tight_layout()
