"""
The best temperature of each domain
===================================

Two classifiers of digits, one trained on handwriting and one on print. How far apart
are the best temperatures of the other domains?
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

import coolhead as ch

data = ch.load_dataset("digits")
data = data.rows(range(0, len(data), 4))
fits = {}
for source in ("mnist", "serif"):
    scored = ch.train_head(data, source).apply(data)
    others = scored.select(*(name for name in data.domain_names if name != source))
    fit = ch.fit_temperature(others.logits, others.labels, groups=others.domains)
    fits[source] = fit
    print(source, dict(zip(fit.groups, fit.temperature.round(2), strict=True)))

# %%
# The lines are 95 % intervals over rows. They do not overlap, so a temperature for a
# new domain must come from several other domains.
figure, axes = plt.subplots(1, 2, figsize=(8, 2.8), sharex=True)
for axis, (source, fit) in zip(axes, fits.items(), strict=True):
    factor = np.exp(1.96 * fit.log_temperature_se)
    left, right = fit.temperature / factor, fit.temperature * factor
    axis.hlines(fit.groups, left, right, lw=6, alpha=0.5)
    axis.plot(fit.temperature, fit.groups, "o", markersize=8)
    axis.axvline(1, color="grey", linestyle=":")
    axis.set(xscale="log", xlabel="best temperature", ylim=(-0.5, 2.5))
    axis.set_xticks([1, 2, 4, 8], ["1", "2", "4", "8"])
    axis.minorticks_off()
    axis.set_title(f"trained on {source}")
figure.tight_layout()
