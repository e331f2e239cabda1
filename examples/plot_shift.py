"""
Measure domain shift from features
==================================

Features alone show how many rows of a new batch lie outside the calibration data, and
how large the importance weights between both would be.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

import coolhead as ch

data = ch.load_dataset("sentiment")
calibration = data.select("movies", "nyt").rows(range(0, 15_000, 10)).features
for name in ("amazon", "tweets"):
    batch = data.select(name).rows(range(0, 3_000, 3)).features
    print(f"--- {name}")
    print(ch.shift.shift_report(calibration, batch))

# %%
# Distance to the centre of the nearest calibration cluster, relative to its radius.
figure, axis = plt.subplots(figsize=(6, 3.4))
edges = np.linspace(0.6, 1.4, 41)
for name in ("movies", "nyt", "amazon", "tweets"):
    batch = data.select(name).rows(range(0, 3_000, 3)).features
    ratio = ch.shift.coverage(batch, calibration).relative_distance
    shown = np.clip(ratio, 0.6, 1.4)
    axis.hist(shown, edges, density=True, histtype="step", label=name)
axis.axvline(1, color="grey", linestyle=":")
axis.set(
    xlabel="distance to the nearest centre / radius of its cluster", ylabel="density"
)
axis.set_title("rows beyond 1 lie outside the calibration data")
axis.legend()
figure.tight_layout()
