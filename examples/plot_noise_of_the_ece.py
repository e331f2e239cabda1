"""
The noise of the expected calibration error
===========================================

A perfectly calibrated classifier has an ECE above zero, because accuracies of bins are
noisy. How large is it, and what is the ECE without this noise?
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

method = ch.TemperatureScaling().fit(seen.logits, seen.labels)
confidence, predicted = method.confidence(tweets.logits)
correct = predicted == tweets.labels

# %%
# Forty subsamples of each size: the ECE, the debiased ECE, and the expected ECE under
# perfect calibration.
sizes = [50, 100, 200, 400, 800]
generator = np.random.default_rng(0)
plain, debiased, expected = [], [], []
for size in sizes:
    draws = [generator.choice(len(correct), size, replace=False) for _ in range(40)]
    samples = [(correct[rows], confidence[rows]) for rows in draws]
    plain.append([ch.expected_calibration_error(*sample) for sample in samples])
    debiased.append([ch.metrics.debiased_calibration_error(*s) for s in samples])
    expected.append(
        np.mean([ch.metrics.expected_calibration_error_null(s[1]) for s in samples])
    )
    print(f"{size:4} rows: ECE {np.mean(plain[-1]):.3f}, expected {expected[-1]:.3f}")

# %%
figure, axis = plt.subplots(figsize=(6.2, 3.6))
for name, values in {"ECE": plain, "debiased": debiased}.items():
    low, middle, high = 100 * np.quantile(values, [0.1, 0.5, 0.9], axis=1)
    (line,) = axis.plot(sizes, middle, "o-", label=name)
    axis.fill_between(sizes, low, high, alpha=0.15, color=line.get_color())
axis.plot(sizes, 100 * np.array(expected), "k:", label="perfectly calibrated")
axis.set(xscale="log", xlabel="rows", ylabel="calibration error (%)", ylim=(0, None))
axis.set_xticks(sizes, map(str, sizes))
axis.minorticks_off()
axis.set_title("few rows make every classifier look badly calibrated")
axis.legend()
figure.tight_layout()
