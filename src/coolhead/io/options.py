"""Multiple choice as JSON lines: every row has its own number of options.

Lines of lm-evaluation-harness (`--log_samples`: `filtered_resps` or `resps`, `target`,
`doc_id`, with the name of the task in the name of the file), or plain ones with
`logits`, and `label`, `domain`, `id`, `features` where they are known. Rows with fewer
options than others end in -inf, which is a masked class.
"""

import json
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from coolhead.io.predictions import Columns, PredictionFile
from coolhead.numerics.moments import pad_options

TASK = re.compile(r"samples_(.+?)_\d{4}-\d\d-\d\dT.*")
UNLABELLED = -1


def open_options(path: Path) -> PredictionFile:
    """Open a file of JSON lines, or a folder of them, one file per task."""
    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    n_rows, width, n_features = 0, 2, 0
    for row in _rows(files):
        n_rows += 1
        width, n_features = max(width, len(row["logits"])), len(row["features"] or ())
    widths = {"logits": width, "labels": 1, "domains": 1, "ids": 1}
    if n_features:
        widths["features"] = n_features

    def arrays(rows: list[dict[str, Any]]) -> Columns:
        columns = {
            name: np.array([row[name] for row in rows])
            for name in widths
            if name != "logits"
        }
        return columns | {"logits": pad_options([row["logits"] for row in rows], width)}

    def blocks(step: int) -> Iterator[Columns]:
        remaining = _rows(files)
        while part := list(islice(remaining, step)):
            yield arrays(part)

    return PredictionFile(
        path,
        n_rows,
        widths,
        blocks,
        lambda: arrays(list(_rows(files))),
        bytes_per_row=8 * (width + n_features + 3),
    )


def _rows(files: Sequence[Path]) -> Iterator[dict[str, Any]]:
    """Yield the columns of each line; features may be None."""
    for file in files:
        found = TASK.fullmatch(file.stem)
        task = found[1] if found else file.stem
        with open(file, encoding="utf-8") as lines:
            for number, text in enumerate(lines, 1):
                if text.strip():
                    yield _row(text, task, f"{file.name} line {number}")


def _row(text: str, task: str, position: str) -> dict[str, Any]:
    try:
        line = json.loads(text)
        scores = [float(score) for score in _scores(line)]
        features = line.get("features")
        row = {
            "logits": scores,
            "labels": _label(line, len(scores)),
            "domains": str(line.get("domain", task)),
            "ids": str(line.get("id", line.get("doc_id", ""))),
            "features": features and [float(value) for value in features],
        }
    except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        raise ValueError(
            f"{position} is no question ({error}); wanted logits, or filtered_resps "
            "and target of lm-evaluation-harness"
        ) from error
    if len(scores) < 2:
        raise ValueError(f"{position} has {len(scores)} options; wanted at least 2")
    return row


def _scores(line: dict[str, Any]) -> list[Any]:
    """Return the scores of the options, in pairs with (is greedy) of the harness."""
    if "logits" in line:
        return line["logits"]
    if "filtered_resps" in line:
        return [answer[0] for answer in line["filtered_resps"]]
    return [answer[0][0] for answer in line["resps"]]


def _label(line: dict[str, Any], n_options: int) -> int:
    """Return the number of the right option; the harness may give its text."""
    target = line.get("label", line.get("target"))
    if target is None:
        return UNLABELLED
    asked = dict(line.get("arguments") or {}).values()
    texts = [str(each["arg_1"]).strip() for each in asked]
    if str(target).strip() in texts:
        return texts.index(str(target).strip())
    label = int(target)
    if not 0 <= label < n_options:
        raise ValueError(f"target is {label} of {n_options} options")
    return label
