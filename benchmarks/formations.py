"""MLDG against ERM on the simulated formations; prints Markdown.

The formations are a simulated stand-in for the paper's StarCraft2 maps, whose data was
never published. Ten maps are divided 4 / 4 / 2 into source, calibration and target, in
five rotations, and every rotation is repeated for each seed.

    python benchmarks/formations.py --images 300 --seeds 3
"""

import argparse
import time

import numpy as np

from coolhead.lab.formations import MAP_NAMES, NOTE, load_formations
from coolhead.lab.heads.train import train_head
from coolhead.lab.images import split_large_small
from coolhead.metrics import expected_calibration_error
from coolhead.numerics.softmax import softmax
from coolhead.numerics.temperature import fit_temperature

HEADS = {
    "ERM": {"kind": "erm"},
    "MLDG, second order": {"kind": "mldg"},
    "MLDG, first order": {"kind": "mldg", "second_order": False},
}


def rotations() -> list[tuple[list[str], list[str], list[str]]]:
    """Return five (source, calibration, target) divisions of the maps."""
    turned = [np.roll(MAP_NAMES, -start).tolist() for start in range(0, 10, 2)]
    return [(names[:4], names[4:8], names[8:]) for names in turned]


def score(archive, small, roles, settings, seed) -> dict[str, float]:
    """Train one head; return error and ECE on the target's Large rows, in percent."""
    source, calibration, target = roles
    begin = time.process_time()
    head = train_head(archive, source, small=small, random_state=seed, **settings)
    seconds = time.process_time() - begin
    result = head.apply(archive)
    seen = result.rows(small & np.isin(result.domains, calibration))
    unseen = result.rows(~small & np.isin(result.domains, target))
    temperature = fit_temperature(seen.logits, seen.labels).temperature
    wrong = unseen.logits.argmax(axis=1) != unseen.labels
    scores = {"error": 100 * wrong.mean(), "seconds": seconds}
    for name, t in (("ECE", 1.0), ("ECE, set-level", float(temperature))):
        probabilities = softmax(unseen.logits, t)
        ece = expected_calibration_error(unseen.labels, probabilities)
        scores[name] = 100 * ece
    return scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=300, help="images per map")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--backbone", default="efficientnet-lite0")
    parser.add_argument("--cache", default=None, help="folder to keep the features in")
    options = parser.parse_args()
    archive = load_formations(options.images, options.backbone, cache=options.cache)
    rows: dict[str, list[dict[str, float]]] = {name: [] for name in HEADS}
    for seed in range(options.seeds):
        small = split_large_small(archive, 0.2, seed)
        for roles in rotations():
            for name, kind in HEADS.items():
                settings = {"epochs": options.epochs, "hidden": options.hidden}
                rows[name].append(score(archive, small, roles, kind | settings, seed))
    print_tables(rows, options)


def print_tables(rows: dict[str, list[dict[str, float]]], options) -> None:
    """Print means over rotations and seeds, then the paired differences to ERM."""
    columns = ["error", "ECE", "ECE, set-level", "seconds"]
    print(f"Formations ({NOTE}), {options.backbone} features, {options.images} images")
    print(f"per map, {options.hidden} hidden units, {options.epochs} epochs,")
    print(f"{options.seeds} seeds x 5 rotations.\n")
    print(f"| head | {' | '.join(columns)} |\n|---|" + "---|" * len(columns))
    values = {
        name: np.array([[entry[c] for c in columns] for entry in entries])
        for name, entries in rows.items()
    }
    for name, table in values.items():
        print(
            f"| {name} | " + " | ".join(f"{v:.2f}" for v in table.mean(axis=0)) + " |"
        )
    print("\nPaired difference to ERM: mean over all runs [lowest, highest seed mean],")
    print("and in how many runs MLDG was lower.\n")
    print(f"| head | {' | '.join(columns[:3])} |\n|---|---|---|---|")
    for name, table in list(values.items())[1:]:
        cells = [difference(d, options.seeds) for d in (table - values["ERM"]).T[:3]]
        print(f"| {name} | " + " | ".join(cells) + " |")


def difference(runs: np.ndarray, n_seeds: int) -> str:
    """Return one cell: the mean, the range over seeds, the count of lower runs."""
    seeds = runs.reshape(n_seeds, -1).mean(axis=1)
    span = f"[{seeds.min():+.2f}, {seeds.max():+.2f}]"
    return f"{runs.mean():+.2f} {span}, {int((runs < 0).sum())}/{runs.size}"


if __name__ == "__main__":
    main()
