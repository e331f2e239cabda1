"""The look of every figure: a colour-blind safe palette, plain text."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from importlib.resources import as_file, files
from io import StringIO
from os import PathLike
from pathlib import Path
from typing import Any

import polars as pl

INK, GREY, PALE, GRID, PAPER = "#1f2933", "#5b6670", "#aeb6bf", "#e3e7eb", "#ffffff"
BEFORE, AFTER = "#d9731a", "#2b6cb0"
# Orange dark enough to read as text.
BEFORE_WORDS = "#a8540b"
GREEN_WORDS, ROSE_WORDS = "#007052", "#8f3a6e"
# Lines in the order of the methods asked for: colour, dashes, marker, colour of words.
LINES = (
    (BEFORE, "--", "o", BEFORE_WORDS),
    (AFTER, "-", "o", AFTER),
    (GREY, ":", "s", GREY),
    ("#009e73", "-.", "^", GREEN_WORDS),
    ("#b3558e", (0, (6, 1)), "D", ROSE_WORDS),
    (INK, (0, (1, 1)), "v", INK),
)
# Violet to yellow, monotone in lightness: grey print keeps the order. Each can be seen
# on white and on the ground of the dark page.
WARMTH = ("#6f4fd0", "#9a4fc4", "#c2519f", "#dc6070", "#ee8450", "#f5b13d")
# Steps of a change: better in blue, worse in orange; ground and ink of each.
CHANGES = {
    "z": ("#eceff2", INK),
    "b1": ("#d9e8f6", INK),
    "b2": ("#b5d2ec", INK),
    "b3": ("#84b4de", INK),
    "b4": ("#2f6fb0", PAPER),
    "b5": ("#1f5793", PAPER),
    "w1": ("#fbe6d3", INK),
    "w2": ("#f7cda6", INK),
    "w3": ("#f0ac6c", INK),
    "w4": ("#d97a26", INK),
    "w5": ("#a4510b", PAPER),
}
BASELINE = "uncalibrated"
LONGEST = 40


def figure_style() -> Any:
    """A context in which new figures look like those of the report.

    Examples
    --------
    >>> import coolhead as ch
    >>> from matplotlib.figure import Figure
    >>> with ch.figures.figure_style():
    ...     ax = Figure(figsize=(4, 3)).subplots()
    ...     line = ax.plot([0, 1], [0, 1])
    ...
    """
    import matplotlib

    with as_file(files("coolhead.figures") / "style.mplstyle") as path:
        settings = matplotlib.rc_params_from_file(path, use_default_template=False)
    return matplotlib.rc_context(settings)


@contextmanager
def canvas(ax: Any, size: tuple[float, float] = (4.6, 3.0)) -> Iterator[Any]:
    """Yield the axes given, as styled by their owner, or new ones in our style.

    Text written on them inside the context is never read as mathematics: names of
    domains and methods may hold dollar signs.
    """
    with nullcontext() if ax is not None else figure_style():
        if ax is None:
            # The one use of pyplot: a notebook shows its figures, and no others.
            import matplotlib.pyplot as plt

            ax = plt.subplots(figsize=size, layout="constrained")[1]
        known = _texts(ax)
        yield ax
        for text, words in _texts(ax).items():
            if known.get(text) != words:
                text.set_parse_math(False)
                text.set_usetex(False)


def rows_height(n_rows: int) -> float:
    """Height in inches of a figure with one line of text for each row."""
    return 0.9 + 0.22 * n_rows


def name_ticks(ax: Any, names: Iterable[str], *, turned: bool = False) -> None:
    """Give the places 0, 1, … of the horizontal axis names, slanted where many."""
    names = list(names)
    slant = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"}
    ax.set_xticks(range(len(names)), names, **(slant if turned else {}))


def in_per_cent(axis: Any) -> None:
    """Write the shares of an axis in per cent."""
    axis.set_major_formatter(lambda share, _: f"{100 * share:g}")


def shorten(name: str) -> str:
    """A name that leaves room for the figure: both ends of a very long one."""
    half = LONGEST // 2
    return name if len(name) <= LONGEST else f"{name[:half]}…{name[-half:]}"


def _texts(ax: Any) -> dict[Any, str]:
    from matplotlib.text import Text

    return {text: text.get_text() for text in ax.findobj(Text)}


def draw_svg(size: tuple[float, float], draw: Callable[[Any], Any], title: str) -> str:
    """Draw on a new figure of this size in inches and return the text of the SVG.

    The figure is apart from pyplot: no window, nothing left behind. `draw` gets it;
    `title` describes it for screen readers.
    """
    from matplotlib.figure import Figure

    target = StringIO()
    with figure_style(), warnings.catch_warnings():
        # The reader's program has the letters that fonts on this machine lack.
        warnings.filterwarnings("ignore", "Glyph", UserWarning)
        figure = Figure(figsize=size, layout="constrained")
        draw(figure)
        about = {"Date": None, "Title": title}
        figure.savefig(target, format="svg", metadata=about)
    return target.getvalue()


def read_frame(table: Any, name: str) -> pl.DataFrame:
    """Return the frame itself, or that table of the run whose folder is given."""
    if not isinstance(table, str | PathLike):
        return table
    # Version 0.2 called one of the tables "arrival".
    names = (name, "arrival") if name == "adaptation" else (name,)
    paths = [Path(table, d, f"{n}.parquet") for n in names for d in ("", "details")]
    found = [path for path in paths if path.is_file()]
    if not found:
        raise ValueError(f"{table} holds no {name}.parquet; is it the folder of a run?")
    return pl.read_parquet(found[0])


def of_method(frame: pl.DataFrame, method: str) -> pl.DataFrame:
    """Return the rows of one method, which must be there."""
    if method not in (known := list(dict.fromkeys(frame["method"]))):
        raise ValueError(f"method is {method!r}; the table holds {', '.join(known)}")
    return frame.filter(pl.col("method") == method)


def wide_means(
    results: Any, by: str, methods: Sequence[str] | None = None, metric="ece_mean"
) -> pl.DataFrame:
    """Return means in per cent: one row per `by`, one column per method."""
    frame = read_frame(results, "results").filter(pl.col("metric") == metric)
    if methods is not None:
        frame = pl.concat([of_method(frame, name) for name in methods])
    means = frame.pivot(
        on="method", index=by, values="value", aggregate_function="mean"
    )
    return means.with_columns(pl.exclude(by).cast(pl.Float64) * 100)
