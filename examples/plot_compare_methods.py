"""
Compare methods on every left-out domain
========================================

One classifier and three domains other than its source. Each is left out once; methods
learn from the other two. `coolhead compare` does the same on the command line.
"""

# %%
import matplotlib.pyplot as plt
import polars as pl

import coolhead as ch
from coolhead.compare import compare_methods

data = ch.load_dataset("digits")
data = data.rows(range(0, len(data), 4))
scored = ch.train_head(data, "mnist").apply(data)
others = scored.select("uci", "serif", "sans")
methods = {
    "set-level": ch.TemperatureScaling(),
    "nearest cluster": ch.NearestClusterTemperature(8),
    "regression": ch.RegressedTemperature(8),
    "ensemble": ch.TemperatureEnsemble(n_clusters=8),
    "shift-aware": ch.ShiftAwareTemperature(),
}
scores = compare_methods(others, methods, n_draws=200)
for score in scores:
    mark = "best" if score.best else "as good" if score.tied else ""
    print(f"{score.domain:6} {score.method:16} ECE {score.ece} {mark}")

# %%
# Blue is better than uncalibrated, orange is worse.
table = pl.DataFrame(
    {
        "split": [score.domain for score in scores],
        "method": [score.method for score in scores],
        "metric": "ece_mean",
        "value": [score.ece.estimate for score in scores],
    }
)
figure, axis = plt.subplots(figsize=(6.4, 2.6))
ch.figures.heat_map(table, axis)
axis.set_title("ECE (%) of the domain left out")
figure.tight_layout()
