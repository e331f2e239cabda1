"""
Drift monitoring, batch by batch
================================

A stream of newspaper comments changes to tweets. More rows then lie outside the
calibration data. There may still be no alarm, because the calibration domains differ as
much from each other.
"""

# %%
import matplotlib.pyplot as plt

import coolhead as ch

data = ch.load_dataset("sentiment")
data = data.rows(range(0, len(data), 4))  # a quarter of the rows: quick to run
scored = ch.train_head(data, "amazon").apply(data)
seen, tweets = scored.select("movies", "nyt"), scored.select("tweets")
known = {"features": seen.features, "sample_domain": seen.domains}

cal = ch.TemperatureEnsemble(n_clusters=8).fit(seen.logits, seen.labels, **known)

# %%
# One monitor per batch, to see which batch drifts.
fresh = ch.DriftMonitor.for_calibrator(cal, seen.features, seen.domains)
usual = scored.select("nyt")
stream = [*usual.blocks(150)][:6] + [*tweets.blocks(150)][:6]
outside, alarms = [], []
for number, batch in enumerate(stream):
    monitor = ch.DriftMonitor(fresh.expected)
    monitor.update(cal.details(batch.logits, batch.features))
    signal = monitor.check()
    outside.append(100 * signal.of("features").found)
    alarms.append(bool(signal.alarm))
    print(f"{number:2} {batch.domain_names[batch.domain_codes[0]]:7} {signal}")

# %%
figure, axis = plt.subplots(figsize=(6.6, 3.2))
colours = ["C1" if alarm else "C0" for alarm in alarms]
axis.bar(range(len(stream)), outside, color=colours)
axis.axvline(5.5, color="grey", linestyle=":")
axis.text(5.4, max(outside) * 0.95, "comments", ha="right")
axis.text(5.6, max(outside) * 0.95, "tweets")
axis.set(xlabel="batch", ylabel="rows outside (%)")
axis.set_title(f"{sum(alarms)} of {len(alarms)} batches raise an alarm")
figure.tight_layout()
