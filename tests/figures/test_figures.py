"""The drawings, each from plain data."""

import matplotlib
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

import coolhead as ch
from coolhead import figures
from coolhead.figures.domains import apart
from coolhead.figures.maps import (
    LABEL_HEIGHT,
    LABEL_WIDTH,
    change_step,
    change_steps,
    changes,
    feature_plane,
    temperature_colours,
)
from coolhead.figures.reliability import reliability_bars
from coolhead.figures.style import CHANGES, LONGEST, WARMTH, draw_svg, shorten

DOLLARS = "$0_to_$10"
METHODS = ("uncalibrated", "set-level", "$\\bad{$")


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def tables():
    """Tables of a run with three methods, two targets and hostile names."""
    rng = np.random.default_rng(0)
    ece = {"uncalibrated": (0.2, 0.3), "set-level": (0.1, 0.31), METHODS[2]: (0.1, 0.3)}
    return {
        "results": pl.DataFrame(
            [
                {
                    "split": f"a > {target}",
                    "target": target,
                    "method": method,
                    "metric": "ece_mean",
                    "value": value,
                }
                for method, values in ece.items()
                for target, value in zip(("b", DOLLARS), values, strict=True)
            ]
        ),
        "histogram": pl.DataFrame(
            {
                "method": METHODS[2],
                "low": [0.0, 0.5],
                "high": [0.5, 1.0],
                "n": [30, 10],
                "n_correct": [14, 8],
            }
        ),
        "selective": pl.DataFrame(
            {
                "method": METHODS[2],
                "coverage": [0.5, 1.0, 0.5, 1.0],
                "accuracy": [0.9, 0.8, 0.7, 0.6],
            }
        ),
        "temperature": pl.DataFrame(
            {"method": [m for m in METHODS for _ in range(5)]}
        ).with_columns(value=pl.Series(rng.uniform(0.5, 40, 15))),
        "adaptation": adaptation(),
        "map": pl.DataFrame(
            {
                "split": DOLLARS,
                "x": rng.normal(size=80),
                "y": rng.normal(size=80),
                "role": ["calibration"] * 40 + ["target"] * 20 + ["centre"] * 20,
                "cluster": [n % 20 for n in range(80)],
                "temperature": [1.0 + n % 20 for n in range(80)],
            }
        ),
    }


def adaptation():
    """A base of a hostile name, with and without batch and labels, and labels alone."""
    known = {"expected": 0.6, "low": 0.4, "high": 0.8}
    rows = [
        {
            "split": split,
            "seed": 0,
            "method": method,
            "base": METHODS[2] if batch is not None else "plain",
            "batch": bool(batch),
            "n_labels": n_labels,
            "draw": 0,
            "ece": 0.1,
            "truth": truth,
        }
        | (known if batch is not None else dict.fromkeys(known))
        for split, truth in (("a > b", 0.7), (f"a > {DOLLARS}", 0.9))
        for method, batch, n_labels in (
            (METHODS[2], False, 0),
            (f"{METHODS[2]}+batch", True, 0),
            (f"{METHODS[2]}+batch+20", True, 20),
            ("plain+20", None, 20),
        )
    ]
    return pl.DataFrame(rows, infer_schema_length=None)


def drawings(tables):
    return {
        "before_after": lambda ax: figures.before_after(
            tables["results"], ax, method=METHODS[2]
        ),
        "by_target": lambda ax: figures.by_target(
            tables["results"], ax, methods=METHODS
        ),
        "heat_map": lambda ax: figures.heat_map(tables["results"], ax),
        "histogram": lambda ax: figures.confidence_histogram(
            tables["histogram"], ax, method=METHODS[2]
        ),
        "selective": lambda ax: figures.selective_prediction(
            tables["selective"], ax, methods=METHODS[2:]
        ),
        "temperatures": lambda ax: figures.temperatures(tables["temperature"], ax),
        "feature_map": lambda ax: figures.feature_map(tables["map"], ax),
        "reliability": lambda ax: figures.reliability(curve(), ax, label=METHODS[2]),
        "expected_accuracy": lambda ax: figures.expected_accuracy(
            tables["adaptation"], ax, methods=[METHODS[2], f"{METHODS[2]}+batch+20"]
        ),
        "error_by_labels": lambda ax: figures.error_by_labels(tables["adaptation"], ax),
    }


NAMES = tuple(drawings(dict.fromkeys(("results",))))


def curve(shift=0.2, binning="width"):
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0.3, 1, 300)
    return ch.reliability_curve(
        rng.random(300) < confidence - shift, confidence, binning=binning
    )


def overlap(first, second):
    return (
        min(first.x1, second.x1) - max(first.x0, second.x0) > 0.5
        and min(first.y1, second.y1) - max(first.y0, second.y0) > 0.5
    )


def undrawn(ax):
    """Labels of ticks beyond the limits of their axis."""
    ticks = [(axis, tick) for axis in (ax.xaxis, ax.yaxis) for tick in axis.majorTicks]
    limits = {axis: sorted(axis.get_view_interval()) for axis, _ in ticks}
    return [
        tick.label1
        for axis, tick in ticks
        if not limits[axis][0] <= tick.get_loc() <= limits[axis][1]
    ]


def test_adaptation_is_drawn_as_it_is(tables):
    ax = figures.expected_accuracy(tables["adaptation"], methods=[METHODS[2]])
    np.testing.assert_allclose(ax.lines[0].get_xydata(), [[70, 60], [90, 60]])
    # 90 % lies outside 40 to 80 %: a thick line.
    assert list(ax.collections[0].get_linewidths()) == [0.8, 2.2]
    with pytest.raises(ValueError, match="method is 'plain\\+20'"):
        figures.expected_accuracy(tables["adaptation"], methods=["plain+20"])
    ax = figures.error_by_labels(tables["adaptation"])
    assert [line.get_xdata().tolist() for line in ax.lines] == [[0], [0, 1], [1]]
    # Each name stands at the end of its own line.
    assert [text.xy for text in ax.texts] == [
        (0, 10),
        (1, ax.texts[1].xy[1]),
        (1, ax.texts[2].xy[1]),
    ]


def test_every_public_drawing_is_tried():
    assert set(dir(figures)) == set(figures.__all__)
    short = {"histogram": "confidence_histogram", "selective": "selective_prediction"}
    tried = {short.get(name, name) for name in NAMES}
    assert tried | {"figure_style"} == set(figures.__all__)


@pytest.mark.parametrize("name", NAMES)
def test_on_given_axes_dollars_are_no_mathematics(tables, name):
    """With matplotlib's own settings, where a lone dollar pair is a formula."""
    figure = Figure()
    ax = figure.subplots()
    ax.annotate("$x_1$", (0.5, 0.5))
    draw = drawings(tables)[name]
    assert draw(ax) is ax
    figure.draw_without_rendering()
    assert ax.texts[0].get_parse_math()  # what the owner wrote stays as it was


@pytest.mark.parametrize("name", NAMES)
def test_new_axes_have_the_look_of_the_report_and_settings_stay(tables, name):
    before = dict(matplotlib.rcParams)
    ax = drawings(tables)[name](None)
    assert dict(matplotlib.rcParams) == before
    assert ax.xaxis.label.get_color() == "#5b6670"
    ax.figure.draw_without_rendering()


@pytest.mark.parametrize("name", NAMES)
def test_the_same_data_give_the_same_bytes_and_no_window(tables, name):
    def draw():
        on = drawings(tables)[name]
        return draw_svg((4, 3), lambda figure: on(figure.subplots()), "two <words>")

    text = draw()
    assert text == draw()
    assert "<title>two &lt;words&gt;</title>" in text
    assert plt.get_fignums() == []


@pytest.mark.parametrize("name", NAMES)
def test_no_words_lie_over_each_other(tables, name):
    ax = drawings(tables)[name](None)
    ax.figure.draw_without_rendering()
    written = [
        text
        for text in ax.findobj(matplotlib.text.Text)
        if text.get_text() and text.get_visible() and text not in undrawn(ax)
    ]
    frame = ax.figure.bbox
    boxes = [text.get_window_extent() for text in written]
    for number, box in enumerate(boxes):
        assert box.x0 > -1 and box.x1 < frame.x1 + 1, written[number]
        assert not any(overlap(box, other) for other in boxes[:number])


def test_the_legend_covers_no_bar(tables):
    ax = figures.confidence_histogram(tables["histogram"], method=METHODS[2])
    ax.figure.draw_without_rendering()
    legend = ax.get_legend().get_window_extent()
    assert not any(overlap(legend, bar.get_window_extent()) for bar in ax.patches)


def test_before_and_after_in_per_cent(tables):
    ax = figures.before_after(tables["results"], method="set-level")
    before, after = (spots.get_offsets()[:, 0] for spots in ax.collections[-2:])
    assert before.tolist() == pytest.approx([20, 30])
    assert after.tolist() == pytest.approx([10, 31])
    worse = ax.collections[1].get_segments()
    assert np.array(worse).tolist() == [[[30.0, 1.0], [31.0, 1.0]]]


def test_every_method_asked_for_is_drawn(tables):
    many = [f"m{number}" for number in range(8)]
    frame = pl.concat(
        tables["results"]
        .filter(pl.col("method") == "set-level")
        .with_columns(method=pl.lit(name), value=pl.col("value") + number / 100)
        for number, name in enumerate(many)
    )
    ax = figures.by_target(frame, methods=many, labels={"m0": "first"})
    assert len(ax.lines) == 8
    assert [text.get_text() for text in ax.texts] == ["first", *many[1:]]


@pytest.mark.parametrize(
    "draw",
    [
        lambda t: figures.before_after(t["results"], method="set-levl"),
        lambda t: figures.by_target(t["results"], methods=["set-levl"]),
        lambda t: figures.confidence_histogram(t["histogram"], method="set-levl"),
        lambda t: figures.selective_prediction(t["selective"], methods=["set-levl"]),
    ],
)
def test_an_unknown_method_is_refused_by_name(tables, draw):
    with pytest.raises(ValueError, match="method is 'set-levl'; the table holds"):
        draw(tables)


def test_maps_of_several_splits_are_not_drawn_over_each_other(tables):
    both = pl.concat([tables["map"], tables["map"].with_columns(split=pl.lit("b"))])
    with pytest.raises(ValueError, match=r"split is None; the table holds \$0"):
        figures.feature_map(both)
    assert len(figures.feature_map(both, split="b").texts) == 20


def test_reliability_of_several_methods_at_once_is_refused():
    bins = {"method": ["a", "b"], "bin": [0, 0], "n": [1, 1]}
    frame = pl.DataFrame(bins | {"sum_confidence": [0.5, 0.5], "sum_correct": [1, 1]})
    with pytest.raises(ValueError, match=r"method is None; wanted one of .*: a, b"):
        figures.reliability(frame)
    assert reliability_bars(frame, "a").count.tolist() == [1]


@pytest.mark.parametrize("binning", ["width", "mass"])
def test_bars_of_a_curve_stand_in_their_bins(binning):
    found = curve(binning=binning)
    bars = reliability_bars(found)
    filled = found.count > 0
    assert bars.error == pytest.approx(found.expected_calibration_error)
    assert (bars.left > found.edges[:-1][filled]).all()
    assert (bars.left + bars.width < found.edges[1:][filled]).all()
    assert (bars.gap > 0).any()
    title = found.plot().get_title()
    assert f"ECE {100 * found.expected_calibration_error:.1f} %, n = 300" in title


def test_bars_of_a_table_are_those_of_the_curve():
    found = curve()
    count = found.count
    frame = pl.DataFrame(
        {
            "bin": range(len(count)),
            "n": count,
            "sum_confidence": np.nan_to_num(found.confidence) * count,
            "sum_correct": np.nan_to_num(found.accuracy) * count,
        }
    )
    ours, theirs = reliability_bars(frame), reliability_bars(found)
    for name in ("left", "width", "accuracy", "confidence", "count"):
        assert getattr(ours, name) == pytest.approx(getattr(theirs, name))


def test_errors_of_accuracy_stay_in_the_diagram():
    """One wrong answer: its standard error reaches below zero."""
    found = ch.reliability_curve([0, 1, 1], [0.2, 0.9, 0.95], n_bins=4)
    (whiskers,) = found.plot().containers[-2].lines[2]
    ends = np.array(whiskers.get_segments())[:, :, 1]
    assert ends.min() >= 0 and ends.max() <= 1


@given(st.lists(st.floats(-50, 50), min_size=1, max_size=8), st.floats(0.01, 10))
def test_labels_are_moved_apart_no_farther_than_needed(values, gap):
    values = np.array(values)
    moved = apart(values, gap)
    assert (np.diff(np.sort(moved)) >= gap - 1e-9).all()
    assert moved.mean() == pytest.approx(values.mean(), abs=1e-9)
    order = np.argsort(values, kind="stable")
    assert (np.diff(moved[order]) > 0).all()
    if len(values) < 2 or np.diff(np.sort(values)).min() >= gap:
        assert moved == pytest.approx(values)


def test_labels_of_a_crowded_map_lie_apart(tables):
    placed = feature_plane(tables["map"]).centres
    assert len(placed) == 20
    for number, (x, y, _) in enumerate(placed):
        assert 0 <= y <= 1
        for other_x, other_y, _ in placed[:number]:
            assert abs(x - other_x) >= LABEL_WIDTH or abs(y - other_y) >= LABEL_HEIGHT


@pytest.mark.parametrize("temperature", [1e-8, 0.01, 1.0, 30.0])
def test_one_temperature_far_from_one_has_a_width(temperature):
    spread = pl.DataFrame({"method": ["a"] * 5, "value": [temperature] * 5})
    low, high = figures.temperatures(spread).get_xlim()
    assert low < min(1, temperature) <= max(1, temperature) < high


def test_temperatures_are_coloured_by_factor():
    colours = temperature_colours([1, 10, 100], 1, 100)
    assert colours.tolist() == [WARMTH[0], WARMTH[3], WARMTH[5]]
    assert temperature_colours([2, 2], 2, 2).tolist() == [WARMTH[3]] * 2


@pytest.mark.parametrize(
    ("change", "step"),
    [
        (-10, "b5"),
        (-9, "b5"),
        (-0.1, "b1"),
        (0, "z"),
        (0.01, "z"),
        (5, "w3"),
        (99, "w5"),
        (np.nan, ""),
    ],
)
def test_steps_of_a_change(change, step):
    assert change_step(change, 10) == step
    assert step in CHANGES or not step


def test_cells_compare_with_the_baseline():
    values = np.array([[20.0, 10.0, np.nan], [10.0, 12.0, 10.0]])
    found = changes(values, ["uncalibrated", "a", "b"], "uncalibrated")
    assert np.isnan(found[:, 0]).all() and np.isnan(found[0, 2])
    assert found[:, 1].tolist() == [-10, 2]
    assert change_steps(found).tolist() == [["", "b5", ""], ["", "w2", "z"]]
    assert np.isnan(changes(values, ["x", "a", "b"], "uncalibrated")).all()


def contrast(first, second):
    """Contrast of two colours by the rule of WCAG 2."""
    shades = []
    for colour in (first, second):
        parts = np.array(matplotlib.colors.to_rgb(colour))
        linear = np.where(
            parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4
        )
        shades.append(linear @ [0.2126, 0.7152, 0.0722])
    return (max(shades) + 0.05) / (min(shades) + 0.05)


def test_cells_are_readable():
    assert min(contrast(ground, ink) for ground, ink in CHANGES.values()) >= 4.4


def test_long_names_keep_both_ends():
    assert shorten("a > b") == "a > b"
    long = shorten("source " + 90 * "x" + " > target")
    assert long.startswith("source ") and long.endswith(" > target")
    assert len(long) == LONGEST + 1


@pytest.mark.parametrize("temperature", [1.0, 3.4, 5.642898330832725, 0.2])
def test_one_temperature_alone_has_a_range(temperature):
    """Around 3.4 alone, matplotlib's range was empty: a division by zero."""
    spread = pl.DataFrame({"method": ["one"], "value": [temperature]})
    low, high = figures.temperatures(spread).get_xlim()
    assert low <= min(temperature, 1) < max(temperature, 1.01) <= high * 1.1


@pytest.mark.parametrize("name", NAMES)
def test_axes_have_names(tables, name):
    ax = drawings(tables)[name](None)
    assert ax.get_xlabel()
    # The rows of this one are splits, targets or domains.
    assert ax.get_ylabel() or name == "before_after"


def test_a_colour_bar_explains_the_heat_map(tables):
    _, bar = figures.heat_map(tables["results"]).figure.axes
    assert bar.get_ylabel() == "change against uncalibrated (points)"
    ticks = bar.get_yticks()
    assert ticks[0] == -ticks[-1] < 0
    # Nothing to compare with: no colours, no bar.
    alone = figures.heat_map(tables["results"], methods=["set-level"])
    assert len(alone.figure.axes) == 1


def test_a_run_of_version_0_2_names_its_table_otherwise(tables, tmp_path):
    (tmp_path / "details").mkdir()
    tables["adaptation"].write_parquet(tmp_path / "details" / "arrival.parquet")
    assert len(figures.error_by_labels(tmp_path).lines) == 3
