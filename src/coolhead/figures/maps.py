"""The map of the feature space: calibration clusters, their T, and the target."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Any

import numpy as np
import polars as pl

from coolhead.figures import style

ROLES = ("calibration", "target", "centre")
# Size of one label, as shares of the width and height of the map.
LABEL_WIDTH, LABEL_HEIGHT = 0.086, 0.064


@dataclass(frozen=True)
class Plane:
    """The map in a square of side one, from left to right and from bottom to top.

    Attributes
    ----------
    known : ndarray of shape (n_samples, 2)
        Calibration rows.
    colours : ndarray of shape (n_samples,)
        The colours of their temperatures.
    target : ndarray of shape (n_target, 2)
    centres : list of (x, y, text)
        Temperatures, none over another.
    low, high : float
        The lowest and the highest temperature.
    """

    known: np.ndarray
    colours: np.ndarray
    target: np.ndarray
    centres: list[tuple[float, float, str]]
    low: float
    high: float


def feature_map(points: Any, ax: Any = None, *, split: str | None = None) -> Any:
    """Draw calibration rows in the colour of their cluster's T, target rows over them.

    Parameters
    ----------
    points : DataFrame, str or Path
        The table ``map`` of a run, or the run's folder.
    ax : Axes, default=None
        A new figure by default.
    split : str, default=None
        The split to draw, where the table holds several; of several seeds and
        classifiers the first is drawn.

    Returns
    -------
    ax : Axes

    Examples
    --------
    >>> import coolhead as ch
    >>> import polars as pl
    >>> points = pl.DataFrame(
    ...     {
    ...         "x": [0.0, 0.1, 2.0, 0.05],
    ...         "y": [0.0, 0.2, 2.0, 0.1],
    ...         "role": ["calibration", "calibration", "target", "centre"],
    ...         "cluster": [0, 0, 0, 0],
    ...         "temperature": [1.5, 1.5, 1.5, 1.5],
    ...     }
    ... )
    >>> ax = ch.figures.feature_map(points)
    """
    from matplotlib.colors import LogNorm
    from matplotlib.patheffects import withStroke

    plane = feature_plane(_one_map(style.read_frame(points, "map"), split))
    halo = [withStroke(linewidth=2.5, foreground=style.PAPER)]
    look = {"ha": "center", "va": "center", "weight": "bold", "path_effects": halo}
    with style.canvas(ax, (4.6, 3.6)) as ax:
        ax.scatter(*plane.known.T, color=plane.colours, s=5, alpha=0.7)
        ax.scatter(*plane.target.T, s=9, marker="+", color=style.INK, lw=0.5, alpha=0.7)
        for x, y, text in plane.centres:
            ax.text(x, y, text, **look)
        if plane.low < plane.high:
            ticks = np.geomspace(plane.low, plane.high, len(style.WARMTH) + 1)
            norm = LogNorm(plane.low, plane.high)
            words = {"label": "temperature T of the cluster"}
            _add_bar(ax, norm, style.WARMTH, ticks, format=temperature_text, **words)
        ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), xticks=[], yticks=[])
        ax.set_xlabel("first principal component of the features")
        ax.set_ylabel("second principal component")
        ax.set_title("● calibration, + target")
    return ax


def feature_plane(points: pl.DataFrame) -> Plane:
    """Locate everything on the map of one split.

    The frame holds the middle 99 per cent; points farther out are drawn on its edge.
    """
    places = points.select("x", "y").to_numpy()
    low, high = np.quantile(places, [0.005, 0.995], axis=0)
    scaled = np.clip((places - low) / np.maximum(high - low, 1e-12), 0, 1)
    role, warm = points["role"].to_numpy(), points["temperature"].to_numpy()
    known, new, centre = (role == name for name in ROLES)
    limits = float(warm.min()), float(warm.max())
    return Plane(
        scaled[known],
        temperature_colours(warm[known], *limits),
        scaled[new],
        _apart(scaled[centre], [temperature_text(t) for t in warm[centre]]),
        *limits,
    )


def temperature_colours(values: Any, lowest: float, highest: float) -> np.ndarray:
    """Return colours of temperatures between the lowest and the highest of a figure.

    Equal factors are equal steps, so that one very high T leaves others their colours.
    """
    if lowest == highest:
        return np.full(len(values), style.WARMTH[len(style.WARMTH) // 2])
    shares = np.log(np.asarray(values) / lowest) / log(highest / lowest)
    steps = (shares * len(style.WARMTH)).astype(int)
    return np.array(style.WARMTH)[np.minimum(steps, len(style.WARMTH) - 1)]


def temperature_text(temperature: float, _: Any = None) -> str:
    """Format a temperature in as few digits as matter."""
    return f"{temperature:.1f}" if temperature < 10 else f"{temperature:.0f}"


def _one_map(frame: pl.DataFrame, split: str | None) -> pl.DataFrame:
    """Select one split, and the first seed and classifier where there are several.

    Each map has a plane of its own: maps cannot be drawn over each other.
    """
    if "split" not in frame.columns:
        return frame
    names = list(dict.fromkeys(frame["split"]))
    if split is None and len(names) == 1:
        split = names[0]
    if split not in names:
        raise ValueError(f"split is {split!r}; the table holds {', '.join(names)}")
    own = frame.filter(pl.col("split") == split)
    for name in ("classifier", "seed"):
        if name in own.columns:
            own = own.filter(pl.col(name) == own[name][0])
    return own


def _apart(places: np.ndarray, texts: list[str]) -> list[tuple[float, float, str]]:
    """Place labels from the top down, each at the nearest free height."""
    placed: list[tuple[float, float, str]] = []

    def free(x: float, y: float) -> bool:
        return 0 <= y <= 1 and all(
            abs(x - other[0]) >= LABEL_WIDTH or abs(y - other[1]) >= LABEL_HEIGHT
            for other in placed
        )

    for number in np.argsort(-places[:, 1], kind="stable"):
        x, y = map(float, places[number])
        # A little more than the height, so that rounding leaves no overlap.
        steps = 1.01 * LABEL_HEIGHT / 2 * np.arange(2 * len(texts) + 2)
        tries = (y + sign * step for step in steps for sign in (-1, 1))
        y = next((height for height in tries if free(x, height)), y)
        placed.append((x, y, texts[number]))
    return placed


def _add_bar(
    ax: Any, norm: Any, colours: Sequence[str], ticks: Any, **bar: Any
) -> None:
    """Add a colour bar of equal steps."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap

    shown = ScalarMappable(norm, ListedColormap(list(colours)))
    ax.figure.colorbar(shown, ax=ax, ticks=ticks, **bar).minorticks_off()


STEPS = 5
# Changes below this many points are about equal.
EQUAL = 0.05
# The colour bar, from better to worse.
BAR = [style.CHANGES[f"b{n}"][0] for n in (5, 4, 3, 2, 1)]
BAR += [style.CHANGES[f"w{n}"][0] for n in (1, 2, 3, 4, 5)]


def heat_map(
    results: Any,
    ax: Any = None,
    *,
    metric: str = "ece_mean",
    methods: Sequence[str] | None = None,
    baseline: str = style.BASELINE,
    labels: Mapping[str, str] | None = None,
) -> Any:
    """Draw an error of every split and method in per cent; the colour is its change.

    Blue: lower than the baseline; orange with ▲: higher, calibration did harm.

    Parameters
    ----------
    results : DataFrame, str or Path
        The results of a run, or the run's folder.
    ax : Axes, default=None
        A new figure by default.
    metric : str, default="ece_mean"
        An error of the results, as a fraction.
    methods : sequence of str, default=None
        The methods to draw; all by default.
    baseline : str, default="uncalibrated"
        The method that others are compared with.
    labels : dict of str to str, default=None
        Names of the methods in the figure.

    Returns
    -------
    ax : Axes

    Examples
    --------
    >>> import coolhead as ch
    >>> import polars as pl
    >>> results = pl.DataFrame(
    ...     {
    ...         "split": ["art > photo", "art > sketch"] * 2,
    ...         "method": ["uncalibrated"] * 2 + ["set-level"] * 2,
    ...         "metric": "ece_mean",
    ...         "value": [0.20, 0.30, 0.05, 0.32],
    ...     }
    ... )
    >>> ax = ch.figures.heat_map(results)
    """
    from matplotlib.colors import Normalize
    from matplotlib.patches import Rectangle

    wide = style.wide_means(results, "split", methods, metric)
    names = wide.columns[1:]
    values = wide.select(names).to_numpy().astype(float)
    found = changes(values, names, baseline)
    steps, largest = change_steps(found), largest_change(found)
    with style.canvas(ax, (2.6 + 0.5 * len(names), 1.6 + 0.24 * len(wide))) as ax:
        for (row, column), step in np.ndenumerate(steps):
            ground, ink = style.CHANGES.get(step, (style.PAPER, style.GREY))
            corner = column - 0.48, row - 0.46
            ax.add_patch(Rectangle(corner, 0.96, 0.92, color=ground, lw=0))
            text = cell_text(float(values[row, column]), step)
            bold = {"weight": "bold"} if step.startswith("w") else {}
            middle = {"ha": "center", "va": "center", "fontsize": 7}
            ax.text(column, row, text, color=ink, **middle, **bold)
        heads = [(labels or {}).get(name, name) for name in names]
        style.name_ticks(ax, heads, turned=True)
        ax.set_yticks(range(len(wide)), map(style.shorten, wide["split"]))
        ax.set(xlabel="method; numbers: error (%)", ylabel="split")
        ax.set(xlim=(-0.5, len(names) - 0.5), ylim=(len(wide) - 0.5, -0.5))
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        if largest > 0:
            ends = Normalize(-largest, largest)
            label = f"change against {baseline} (points)"
            ticks = largest * np.array([-1, -0.5, 0, 0.5, 1])
            _add_bar(ax, ends, BAR, ticks, label=label, format="{x:+.3g}")
    return ax


def changes(values: np.ndarray, names: Sequence[str], baseline: str) -> np.ndarray:
    """Subtract the baseline's column from values; NaN there and where unknown."""
    if baseline not in names:
        return np.full_like(values, np.nan)
    column = list(names).index(baseline)
    found = values - values[:, [column]]
    found[:, column] = np.nan
    return found


def change_steps(found: np.ndarray) -> np.ndarray:
    """Steps of colour: b1…b5 better, w1…w5 worse, z about equal, "" not comparable."""
    largest = largest_change(found)
    return np.vectorize(lambda change: change_step(change, largest), otypes=[object])(
        found
    )


def largest_change(found: np.ndarray) -> float:
    """Return the size from which on a change has the deepest colour."""
    sizes = np.abs(found[~np.isnan(found)])
    # One outlier must not turn all other cells pale.
    return float(np.quantile(sizes, 0.95)) if sizes.size else 0.0


def change_step(change: float, largest: float) -> str:
    """Return the step of one change, where `largest` and above are deepest."""
    if np.isnan(change):
        return ""
    if largest <= 0 or abs(change) < EQUAL:
        return "z"
    size = min(STEPS, 1 + int(STEPS * abs(change) / largest))
    return f"{'w' if change > 0 else 'b'}{size}"


def cell_text(value: float, step: str) -> str:
    """Format the number with a mark of harm, or a dash."""
    if np.isnan(value):
        return "–"
    return f"{value:.1f}{'▲' if step.startswith('w') else ''}"
