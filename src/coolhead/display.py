"""How results show themselves: short text at the prompt, a small table in notebooks."""

from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np

# A longer table shows its first rows, and how many there are.
MOST_ROWS = 20


class Summary(NamedTuple):
    """What a result shows of itself.

    Attributes
    ----------
    title : str
        One line, or a sentence.
    header : sequence of str
        Names of the columns; empty for a list of names and values.
    rows : sequence of sequence of str
    """

    title: str
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()

    def shown_rows(self) -> tuple[Sequence[Sequence[str]], str]:
        """Return the rows to show, and a remark on those that are left out."""
        left = len(self.rows) - MOST_ROWS
        return self.rows[:MOST_ROWS], f"… and {left} more rows" if left > 0 else ""


class Summarised:
    """Gives a class a short `repr` and an HTML table; it writes `_summary`."""

    def _summary(self) -> Summary:
        raise NotImplementedError(f"{type(self).__name__} does not define _summary")

    def __repr__(self) -> str:
        return as_text(self._summary())

    def _repr_html_(self) -> str:
        return as_html(self._summary())


def as_text(summary: Summary) -> str:
    """Lay a summary out in columns of one width, numbers to the right."""
    rows, remark = summary.shown_rows()
    table = [summary.header, *rows] if summary.header else list(rows)
    if not table:
        return summary.title
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    # A list of names and values has text in both columns.
    pad = str.rjust if summary.header else str.ljust
    lines = [
        "  ".join([first.ljust(widths[0]), *map(pad, rest, widths[1:])]).rstrip()
        for first, *rest in table
    ]
    return "\n".join([summary.title, *lines, *([remark] if remark else [])])


def as_html(summary: Summary) -> str:
    """Write a summary as HTML; all text is escaped."""
    rows, remark = summary.shown_rows()
    # Notebooks align to the right, which suits numbers only.
    align = "" if summary.header else ' style="text-align: left"'
    names = "".join(f"<th>{escape(name)}</th>" for name in summary.header)
    head = f"<tr>{names}</tr>" if names else ""
    body = "".join(
        f"<tr><th{align}>{escape(first)}</th>"
        + "".join(f"<td{align}>{escape(text)}</td>" for text in rest)
        + "</tr>"
        for first, *rest in rows
    )
    table = f"<table>{head}{body}</table>" if rows else ""
    return f"<div><p>{escape(summary.title)}</p>{table}<p>{remark}</p></div>"


def percent(found: Any) -> str:
    """An interval in per cent, as in "12.3 [10.1, 14.2]"."""
    values = 100 * np.array([found.estimate, found.low, found.high])
    return "{:.1f} [{:.1f}, {:.1f}]".format(*values)


def spread(values: Any, form: str = ".3g") -> str:
    """One number, or the lowest and the highest of several."""
    low, high = (format(float(end(values)), form) for end in (np.min, np.max))
    return low if low == high else f"{low} to {high}"


# Steps of `fit` that other modules call; users do not.
INTERNAL = {"fit_data", "fit_part", "note_masked", "note_shapes"}


class SummarisedFit:
    """Adds what was learned to the `repr` and HTML of a fitted scikit-learn estimator.

    Stands before `BaseEstimator` among the bases.
    """

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        # scikit-learn passes the length on by this name.
        text = super().__repr__(N_CHAR_MAX)  # pyright: ignore[reportCallIssue]
        learned = learned_facts(self)
        status = learned.get("status", "").split(";")[0]
        domains = "domains" in learned and learned["domains"].split(":")[0] + " domains"
        parts = [learned.get("temperature"), status, domains]
        return ": ".join([text, ", ".join(filter(None, parts))]) if learned else text

    @property
    def _repr_html_(self) -> Any:
        learned = learned_facts(self)
        if not learned:
            return super()._repr_html_  # pyright: ignore[reportAttributeAccessIssue]
        summary = Summary(super().__repr__(), (), list(learned.items()))
        return lambda: as_html(summary)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        shown = {"text/plain": repr(self)}
        html = getattr(self, "_repr_html_", None)
        return shown if html is None else shown | {"text/html": html()}

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if name not in INTERNAL]


def learned_facts(estimator: Any) -> dict[str, str]:
    """Describe a fit by its attributes, {name: text}; empty before it.

    A `CalibratedClassifier` is described by its calibrator.
    """
    calibrator = getattr(estimator, "calibrator_", estimator)

    def found(name: str) -> Any:
        return getattr(calibrator, name, None)

    if found("n_classes_") is None:
        return {}
    facts: dict[str, str] = {}
    if found("cluster_temperatures_") is not None:
        each = np.ravel(found("cluster_temperatures_"))
        facts["temperature"] = f"T = {spread(each)} in {len(each)} clusters"
    elif found("temperature_") is not None:
        about = "T(x) around " if found("uses_features") else "T = "
        facts["temperature"] = about + spread(found("temperature_"))
    if found("status_") is not None:
        facts["status"] = ", ".join(dict.fromkeys(map(str, np.ravel(found("status_")))))
    if found("nll_") is not None and found("nll_uncalibrated_") is not None:
        before, after = found("nll_uncalibrated_"), found("nll_")
        facts["log loss"] = f"{before:.4g} uncalibrated, {after:.4g} calibrated"
    evidence = found("evidence_")
    if evidence is not None and len(evidence.domains):
        pairs = zip(evidence.domains, evidence.sizes, strict=True)
        names = ", ".join(f"{name} ({size})" for name, size in pairs)
        facts["domains"] = f"{len(evidence.domains)}: {names}"
    if (offsets := found("class_offsets_")) is not None:
        facts["class offsets"] = spread(offsets, "+.2f") if np.any(offsets) else "none"
    names = found("class_names_") or ()
    facts["classes"] = ", ".join(map(str, names)) or str(found("n_classes_"))
    if found("uses_features"):
        facts["features"] = str(found("n_features_"))
    return facts
