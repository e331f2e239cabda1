"""All methods on features of four domains, twelve splits: who helps, who harms.

    python benchmarks/pacs_methods.py features.npz

The archive holds features, labels and a domain per row. One logistic head is trained
per source domain on 80 % of it. The other domains take turns as the target; the two
that remain calibrate with 20 % of their rows. Methods that ask for unlabelled target
rows get the target's 20 %; everything is scored on its 80 %.
"""

import argparse
import time
import warnings
from collections import defaultdict
from itertools import permutations

import numpy as np
from compared_methods import METHODS, fit_with
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from coolhead.metrics import expected_calibration_error


def load(path: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features (n, d), labels (n,) and domain names (n,) of an archive."""
    if not path.endswith(".npz"):
        from coolhead.archive import load_archive

        archive = load_archive(path)
        return np.asarray(archive.features, np.float32), archive.labels, archive.domains
    with np.load(path, allow_pickle=False) as arrays:
        domain = arrays["domain"]
        if "domain_names" in arrays and domain.dtype.kind in "iu":
            domain = arrays["domain_names"][domain]
        return arrays["features"].astype(np.float32), arrays["labels"], domain


def small_rows(domains: np.ndarray, seed: int) -> np.ndarray:
    """Mark a random fifth of every domain."""
    rng = np.random.default_rng(seed)
    small = np.zeros(len(domains), bool)
    for name in np.unique(domains):
        rows = rng.permutation(np.flatnonzero(domains == name))
        small[rows[: len(rows) // 5]] = True
    return small


def train_head(features: np.ndarray, labels: np.ndarray, n_classes: int):
    """Return a function from features to logits (n, k) of a logistic head."""
    head = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300))
    head.fit(features, labels)
    known = head[-1].classes_
    if len(known) != n_classes:
        msg = f"the source has {len(known)} of {n_classes} classes"
        raise ValueError(msg)
    return lambda rows: head.decision_function(rows).astype(np.float32)


def score_split(rows: dict, sample_domain: np.ndarray, logits, labels, features):
    """Yield (method, ECE, NLL, accuracy change, seconds, status) of one split."""
    test = rows["evaluation"]
    plain = logits[test].argmax(axis=1) == labels[test]
    for name, method in METHODS.items():
        own = rows[method.labelled]
        start = time.process_time()
        with warnings.catch_warnings():
            # Few effective samples are expected here; the flags are counted below.
            warnings.simplefilter("ignore", UserWarning)
            calibrator = fit_with(
                method.make(),
                logits[own],
                labels[own],
                features=features[own],
                sample_domain=sample_domain[own],
                target_features=features[rows["target"]],
                target_logits=logits[rows["target"]],
                reference_features=features[rows["train"]]
                if method.labelled == "source" or name == "DAC"
                else None,
            )
        seconds = time.process_time() - start
        chances = calibrator.predict_proba(logits[test], features[test])
        error = expected_calibration_error(labels[test], chances)
        own_chance = chances[np.arange(len(chances)), labels[test]]
        nll = -np.mean(np.log(np.maximum(own_chance.astype(float), 1e-30)))
        change = np.mean(chances.argmax(axis=1) == labels[test]) - plain.mean()
        yield name, error, nll, change, seconds, str(calibrator.status_)


def run(path: str, seed: int) -> dict[str, list]:
    """Scores of every method on every split."""
    features, labels, domains = load(path)
    small = small_rows(domains, seed)
    names, n_classes = np.unique(domains), int(labels.max()) + 1
    results = defaultdict(list)
    heads = {}
    for source, target in permutations(names, 2):
        if source not in heads:
            train = (domains == source) & ~small
            head = train_head(features[train], labels[train], n_classes)
            heads[source] = head(features)
        others = small & (domains != source) & (domains != target)
        rows = {
            "train": (domains == source) & ~small,
            "source": (domains == source) & small,
            "calibration": others,
            "target": (domains == target) & small,
            "evaluation": (domains == target) & ~small,
        }
        scores = score_split(rows, domains, heads[source], labels, features)
        for name, *values in scores:
            results[name].append(values)
        print(f"<!-- {source} to {target} done -->", flush=True)
    return results


def print_table(results: dict[str, list]) -> None:
    """Print one Markdown row per method, means over the splits."""
    plain = np.array([row[0] for row in results["uncalibrated"]])
    print(
        f"\n| method | ECE % | NLL | accuracy change | harmed of {len(plain)} ", end=""
    )
    print("| worst harm | fit CPU s | NLL rose on the fit set |")
    print("|---|---|---|---|---|---|---|---|")
    for name, rows in results.items():
        error, nll, change, seconds = np.array([row[:4] for row in rows], float).T
        harm = error - plain
        rose = sum(row[4] == "nll_above_uncalibrated" for row in rows)
        print(
            f"| {name} | {100 * error.mean():.2f} | {nll.mean():.3f} "
            f"| {100 * change.mean():+.2f} | {np.sum(harm > 1e-9)} "
            f"| {100 * max(harm.max(), 0):+.2f} | {seconds.mean():.2f} | {rose} |"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("archive", help="features as .npz or .safetensors")
    parser.add_argument("--seed", type=int, default=0, help="of the 80/20 division")
    arguments = parser.parse_args()
    print_table(run(arguments.archive, arguments.seed))
