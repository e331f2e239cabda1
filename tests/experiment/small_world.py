"""A small world of four domains, and a protocol that runs on it in a second."""

import json
from pathlib import Path

import numpy as np

from coolhead.io.archive import DomainArchive

DOMAINS = ("north", "east", "south", "west")
METHODS = (
    "uncalibrated",
    "source-only",
    "target-only",
    "set-level",
    "nearest-cluster",
    "regression",
    "ensemble",
)


def make_archive(n_rows=160, n_classes=4, random_state=0, **changes) -> DomainArchive:
    """Logits that are more over-confident the farther a domain lies out."""
    rng = np.random.default_rng(random_state)
    codes = np.repeat(np.arange(len(DOMAINS)), n_rows)
    labels = rng.integers(n_classes, size=len(codes))
    features = rng.normal(size=(len(codes), 5)) + 0.8 * codes[:, None]
    features[:, 0] += labels
    logits = rng.normal(size=(len(codes), n_classes))
    logits[np.arange(len(codes)), labels] += 1.5
    logits *= (1.5 + codes)[:, None]
    columns = {
        "logits": logits.astype(np.float32),
        "features": features.astype(np.float32),
        "labels": labels,
        "domains": codes,
        "domain_names": DOMAINS,
    }
    return DomainArchive(**(columns | changes))


def protocol_content(folder: Path, **changes) -> dict:
    """A protocol on archives with given logits, one per source, in `folder`."""
    content = {
        "name": "small",
        "title": "A small world",
        "data": {
            "kind": "trained",
            "pattern": f"{folder}/source={{source}}.safetensors",
        },
        "roles": {
            "domains": list(DOMAINS),
            "source": 1,
            "calibration": 2,
            "target": 1,
        },
        "methods": {"names": list(METHODS), "clusters": 3, "sensitivity": [2]},
        "evaluation": {"size": 60, "draws": 20, "bootstrap": 50},
    }
    return content | changes


def write_toml(path: Path, content: dict) -> Path:
    """Write a nested dictionary of plain values as TOML."""
    lines = [
        f"{key} = {json.dumps(v)}" for key, v in content.items() if not _is_table(v)
    ]
    for key, table in content.items():
        if _is_table(table):
            lines += [f"\n[{key}]"]
            lines += [f"{name} = {json.dumps(value)}" for name, value in table.items()]
    path.write_text("\n".join(lines))
    return path


def _is_table(value) -> bool:
    return isinstance(value, dict)
