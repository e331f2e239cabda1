"""
How far is the new place from the calibration data?
===================================================

Features alone tell how much of a new batch lies outside the calibration data, and how
strongly one would have to reweigh to get from one to the other.
"""

# %%
import coolhead as ch

data = ch.load_dataset("sentiment")
calibration = data.select("movies", "nyt").rows(range(0, 15_000, 10)).features
for name in ("amazon", "tweets"):
    batch = data.select(name).rows(range(0, 3_000, 3)).features
    print(f"--- {name}")
    print(ch.shift.shift_report(calibration, batch))
