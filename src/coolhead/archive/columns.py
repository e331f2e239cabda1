"""The columns of an archive: checked one by one, then against each other."""

from typing import Any

import numpy as np

from coolhead.archive import checks
from coolhead.archive.strings import PackedStrings
from coolhead.files import check_metadata
from coolhead.numerics.checks import as_logits
from coolhead.numerics.class_names import column_names


def check_columns(
    *,
    logits: Any = None,
    features: Any = None,
    labels: Any = None,
    domains: Any = None,
    groups: Any = None,
    ids: Any = None,
    class_names: Any = None,
    domain_names: Any = None,
    metadata: Any = None,
) -> dict[str, Any]:
    """Everything but finiteness, which takes a pass over the large arrays."""
    class_names = column_names(logits) if class_names is None else class_names
    logits, features, n_rows = _check_values(logits, features)
    if class_names is not None:
        class_names = checks.check_names(class_names, "class_names")
    codes, names = checks.encode_domains(domains, domain_names, n_rows)
    n_classes = count_classes(logits, class_names)
    if labels is not None:
        labels, class_names = checks.check_labels(
            labels, n_rows, n_classes, class_names
        )
    return {
        "logits": logits,
        "features": features,
        "labels": labels,
        "domain_codes": codes,
        "domain_names": names,
        "class_names": class_names,
        "metadata": check_metadata(metadata),
        "_groups": _check_tags(groups, n_rows, "groups"),
        "_ids": _check_tags(ids, n_rows, "ids"),
    }


def count_classes(
    logits: np.ndarray | None, class_names: tuple[str, ...] | None
) -> int | None:
    """Columns of the logits, else the number of class names, else unknown."""
    if logits is None:
        return None if class_names is None else len(class_names)
    if class_names is not None and len(class_names) != logits.shape[1]:
        raise ValueError(
            f"class_names has {len(class_names)} names, the logits have "
            f"{logits.shape[1]} columns; wanted the same"
        )
    return logits.shape[1]


def _check_values(
    logits: Any, features: Any
) -> tuple[np.ndarray | None, np.ndarray | None, int]:
    """Types and shapes of logits and features, and the number of rows."""
    if features is not None:
        features = checks.check_matrix(features, "features")
    if logits is not None:
        logits = as_logits(logits)
        if features is not None:
            checks.check_length(len(features), len(logits), "features")
        return logits, features, len(logits)
    if features is None:
        raise ValueError("logits and features are both missing; wanted at least one")
    return logits, features, len(features)


def _check_tags(
    values: Any, n_rows: int, name: str
) -> np.ndarray | PackedStrings | None:
    if values is None:
        return None
    if isinstance(values, PackedStrings):
        checks.check_length(len(values), n_rows, name)
        return values
    return checks.check_tags(values, n_rows, name)
