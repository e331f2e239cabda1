"""
The loss as a function of the temperature
=========================================

Temperature scaling minimises the negative log-likelihood of `softmax(z / T)`. Every
domain has its own minimum: the further from the source of a classifier, the higher its
best temperature.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

import coolhead as ch

data = ch.load_dataset("sentiment")
data = data.rows(range(0, len(data), 4))  # a quarter of the rows: quick to run
scored = ch.train_head(data, "amazon").apply(data)

# %%
# All domains are solved in the same passes over the logits; each has a status.
fit = ch.fit_temperature(scored.logits, scored.labels, groups=scored.domains)
for name, temperature, status in zip(
    fit.groups, fit.temperature, fit.status, strict=True
):
    print(f"{name:8} T = {temperature:.2f}, {status}")

# %%
# Amazon is lowest because those rows were trained on. Never calibrate on them.
figure, axis = plt.subplots(figsize=(6.2, 3.8))
grid = np.geomspace(0.5, 8, 60)
for name, best, lowest in zip(fit.groups, fit.temperature, fit.nll, strict=True):
    rows = scored.select(name)
    losses = [
        ch.metrics.negative_log_likelihood(
            rows.labels, logits=rows.logits, temperature=temperature
        )
        for temperature in grid
    ]
    (line,) = axis.plot(grid, losses, label=name)
    axis.plot(best, lowest, "o", color=line.get_color())
axis.axvline(1, color="grey", linestyle=":")
axis.set(
    xscale="log", xlim=(0.45, 9), ylim=(0, 2), xlabel="temperature", ylabel="mean loss"
)
axis.set_title("every domain has its own best temperature")
axis.set_xticks([0.5, 1, 2, 4, 8], ["0.5", "1", "2", "4", "8"])
axis.minorticks_off()
axis.legend()
figure.tight_layout()
