"""Random temperature fits against an independent solver.

    python benchmarks/random_fits.py 5000

Ordinary and hostile problems (ties, masks, weights, many classes of which one
dominates, logits of any scale and precision, groups) are fitted by `fit_temperature`
and by SciPy's root finder on the plain derivative of the loss in float64. Prints the
largest relative error of T and every fit whose status disagrees.
"""

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import coolhead as ch
from numerics.random_problems import (
    LOPSIDED,
    MASKS,
    disagreement,
    lopsided_problem,
    oracle,
    random_problem,
)

KINDS = ("float64", "float32", "float16", "lopsided", "groups")


def problems(kind: str, seed: int) -> Iterator[tuple[Any, ...]]:
    """Logits, labels, what is masked and weights; of several groups one by one."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    if kind == "lopsided":
        z, y = lopsided_problem(seed, LOPSIDED[seed % len(LOPSIDED)])
        yield z, y, np.zeros(z.shape, bool), None
        return
    k, weighted = int(rng.integers(2, 10)), bool(rng.integers(2))
    limit = {"float16": 0, "float32": 3}.get(kind, 6)
    # Groups are rows of one classifier: which logits are masks is judged over all.
    log_scale = rng.uniform(-limit, limit)
    for _ in range(4 if kind == "groups" else 1):
        z, y, masked, weights = random_problem(
            seed=int(rng.integers(2**32)),
            n=int(rng.integers(1, 60)),
            k=k,
            ties=bool(rng.integers(2)),
            # Half precision holds no -1e9, and its smallest number is none of these.
            mask=None if kind == "float16" else list(MASKS.values())[seed % 4],
            log_scale=log_scale,
            weighted=weighted,
        )
        if kind != "groups":
            with np.errstate(over="ignore"):
                z = np.maximum(z, np.finfo(kind).min).astype(kind)
        yield z, y, masked, weights


def fit(kind: str, seed: int) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Fits beside the answer of the oracle."""
    parts = list(problems(kind, seed))
    if all(z.min() >= 0 and z.max() <= 1 for z, *_ in parts):
        return  # may be probabilities, which are refused
    logits, labels = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    weights = None
    if parts[0][3] is not None:
        weights = np.concatenate([part[3] for part in parts])
    groups = np.repeat(np.arange(len(parts)), [len(part[1]) for part in parts])
    found = ch.fit_temperature(logits, labels, groups=groups, sample_weight=weights)
    for row, (z, y, masked, own) in enumerate(parts):
        one = ch.numerics.solver.TemperatureFit(
            found.temperature[row], None, str(found.status[row]), found.nll[row], 0, 0
        )
        yield one, oracle(z.astype(np.float64), y, masked, own)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("fits", type=int)
    parser.add_argument("--seed", type=int, default=0)
    wanted = parser.parse_args()
    started, seed = time.process_time(), wanted.seed
    largest, statuses = dict.fromkeys(KINDS, 0.0), Counter()
    counts: Counter[str] = Counter()
    wrong = []
    while counts.total() < wanted.fits:
        for kind in KINDS:
            for one, answer in fit(kind, seed):
                counts[kind] += 1
                statuses[one.status] += 1
                reason = disagreement(one, *answer)
                if reason is not None:
                    wrong.append(f"{kind}, seed {seed}: {reason}")
                elif one.status == "converged" and answer[0] == "converged":
                    error = abs(one.temperature / answer[1] - 1)
                    largest[kind] = max(largest[kind], error)
        seed += 1
    print("| logits | fits | largest relative error of T |\n|---|---|---|")
    for kind in KINDS:
        print(f"| {kind} | {counts[kind]} | {largest[kind]:.1e} |")
    for line in wrong:
        print(f"disagrees: {line}")
    result = {"fits": counts.total(), "largest_error": max(largest.values())}
    result |= {"disagreeing": len(wrong), "statuses": dict(statuses)}
    result["cpu_seconds"] = round(time.process_time() - started)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
