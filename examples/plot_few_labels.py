"""
Few labels: alone, or on top of other domains
=============================================

Temperature scaling on a handful of labels is noisy. Moving a calibrator that other
domains taught needs fewer of them.
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
told = ch.new_domain.learn_evidence(cal, seen.logits, seen.labels, **known)

# %%
# The first half of the tweets may be labelled, the second half judges. Eight draws.
half = len(tweets) // 2
batch, judge = tweets.rows(slice(0, half)), tweets.rows(slice(half, None))


def error(method):
    probabilities = method.predict_proba(judge.logits, judge.features)
    return 100 * ch.expected_calibration_error(judge.labels, probabilities)


counts = [10, 20, 50, 100]
moved, alone = np.empty((2, 8, len(counts)))
for draw in range(8):
    there = ch.NewDomain(
        cal, batch.logits, batch.features, evidence=told, random_state=draw
    )
    generator = np.random.default_rng(draw)
    for place, count in enumerate(counts):
        rows = there.rows_to_label(count)
        helped = there.with_labels(rows, batch.labels[rows])
        moved[draw, place] = error(helped.calibrator)
        rows = generator.choice(half, count, replace=False)
        plain = ch.TemperatureScaling().fit(batch.logits[rows], batch.labels[rows])
        alone[draw, place] = error(plain)

# %%
figure, axis = plt.subplots(figsize=(6.2, 3.6))
for name, errors in {"moved by labels": moved, "labels alone": alone}.items():
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
