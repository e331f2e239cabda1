"""What an archive of given logits says of its training, against what a sweep does.

A classifier that was trained on another source, or on rows that the sweep holds back as
Small, has seen the labels it is calibrated on: its numbers would be too good.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from coolhead.experiment.protocol import Division

WORDS = {"small": "small", "stratify": "stratify", "random_state": "seed"}


def trained_sources(metadata: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The domains a classifier was trained on, or None where that is not recorded."""
    source = _table(metadata, "head").get("source")
    if isinstance(source, str):
        return (source,)
    if isinstance(source, list | tuple) and all(isinstance(s, str) for s in source):
        return tuple(source)
    return None


def recorded_division(metadata: Mapping[str, Any]) -> dict[str, Any] | None:
    """Share, stratification and seed of the Small rows it was not trained on."""
    found = _table(metadata, "division")
    if found.keys() >= WORDS.keys():
        return {key: found[key] for key in WORDS}
    head = _table(metadata, "head")
    if head.get("kind") == "finetune" and {"small", "random_state"} <= head.keys():
        # Written before the division had a place of its own.
        known = {key: head[key] for key in ("small", "random_state")}
        return {"stratify": False} | known
    return None


def check_training(
    path: Path,
    metadata: Mapping[str, Any],
    source: tuple[str, ...],
    division: Division,
    seed: int,
) -> str | None:
    """Refuse an archive that contradicts a cell; a note where that can not be seen.

    Parameters
    ----------
    path, metadata : of the archive.
    source : the domains that the cell calls its source.
    division, seed : how the sweep divides the rows of this cell.
    """
    sources = trained_sources(metadata)
    if sources is not None and set(sources) != set(source):
        raise ValueError(
            f"{path} was trained on {'+'.join(sources)}, wanted {'+'.join(source)}: "
            "give the archive of that source, its name belongs to {source} of "
            "data.pattern"
        )
    if sources is not None and _table(metadata, "division").get("separate") is True:
        # None of these rows was trained on, however they are divided.
        return None
    found = recorded_division(metadata)
    if sources is None or found is None:
        what = "source" if sources is None else "division into Large and Small"
        return (
            f"{path} does not record the {what} it was trained with: whether its "
            "Small rows were held back cannot be checked"
        )
    wanted = division.model_dump() | {"random_state": seed}
    if found != wanted:
        raise ValueError(
            f"{path} was trained on the Large rows of {_told(found)}, wanted "
            f"{_told(wanted)}: it has seen Small rows that would calibrate it. Train "
            "an archive per seed and put {seed} into data.pattern, or leave "
            "'division' out of vary and train with that division"
        )
    return None


def _table(metadata: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = metadata.get(name)
    return found if isinstance(found, Mapping) else {}


def _told(division: Mapping[str, Any]) -> str:
    return ", ".join(f"{word} = {division[key]}" for key, word in WORDS.items())
