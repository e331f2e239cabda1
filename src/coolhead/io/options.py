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
from typing import Any, NamedTuple

import numpy as np

from coolhead.io.predictions import Columns, PredictionFile
from coolhead.numerics.moments import pad_options

TASK = re.compile(r"samples_(.+?)_\d{4}-\d\d-\d\dT.*")
UNLABELLED = -1


class Question(NamedTuple):
    """One line: scores of its options, and what else it says."""

    scores: list[float]
    label: int
    domain: str
    id: str
    features: list[float] | None


def open_options(path: Path) -> PredictionFile:
    """A file of JSON lines, or a folder of them, one file per task."""
    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    n_rows, width, n_features = 0, 2, 0
    for question in _questions(files):
        n_rows += 1
        width = max(width, len(question.scores))
        n_features = len(question.features or ())
    widths = {"logits": width, "labels": 1, "domains": 1, "ids": 1}
    if n_features:
        widths["features"] = n_features

    def blocks(step: int) -> Iterator[Columns]:
        questions = _questions(files)
        while part := list(islice(questions, step)):
            yield _columns(part, width)

    return PredictionFile(
        path,
        n_rows,
        widths,
        blocks,
        lambda: _columns(list(_questions(files)), width),
        bytes_per_row=8 * (width + n_features + 3),
    )


def _columns(questions: list[Question], width: int) -> Columns:
    columns: Columns = {
        "logits": pad_options([question.scores for question in questions], width),
        "labels": np.array([question.label for question in questions]),
        "domains": np.array([question.domain for question in questions], np.str_),
        "ids": np.array([question.id for question in questions], np.str_),
    }
    if questions[0].features is not None:
        columns["features"] = np.array([q.features for q in questions], np.float64)
    return columns


def _questions(files: Sequence[Path]) -> Iterator[Question]:
    for file in files:
        found = TASK.fullmatch(file.stem)
        task = found[1] if found else file.stem
        with open(file, encoding="utf-8") as lines:
            for number, text in enumerate(lines, 1):
                if text.strip():
                    yield _question(text, task, f"{file.name} line {number}")


def _question(text: str, task: str, place: str) -> Question:
    try:
        line = json.loads(text)
        scores = [float(score) for score in _scores(line)]
        features = line.get("features")
        name = line.get("id", line.get("doc_id", ""))
        label = _label(line, len(scores))
    except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        raise ValueError(
            f"{place} is no question ({error}); wanted logits, or filtered_resps and "
            "target of lm-evaluation-harness"
        ) from error
    if len(scores) < 2:
        raise ValueError(f"{place} has {len(scores)} options; wanted at least 2")
    return Question(scores, label, str(line.get("domain", task)), str(name), features)


def _scores(line: dict[str, Any]) -> list[Any]:
    """Scores of the options; the harness writes pairs (log-likelihood, is greedy)."""
    if "logits" in line:
        return line["logits"]
    if "filtered_resps" in line:
        return [answer[0] for answer in line["filtered_resps"]]
    return [answer[0][0] for answer in line["resps"]]


def _label(line: dict[str, Any], n_options: int) -> int:
    """Number of the right option; the harness may say it by its text."""
    target = line.get("label", line.get("target"))
    if target is None:
        return UNLABELLED
    texts = [
        str(asked["arg_1"]).strip()
        for asked in dict(line.get("arguments") or {}).values()
    ]
    if str(target).strip() in texts:
        return texts.index(str(target).strip())
    label = int(target)
    if not 0 <= label < n_options:
        raise ValueError(f"target is {label} of {n_options} options")
    return label
