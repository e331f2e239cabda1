"""Results at the prompt and in notebooks: short text, small tables, no internals."""

import warnings
from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import coolhead as ch
from coolhead.compare import compare_methods
from coolhead.display import MOST_ROWS, Summary, as_html, as_text
from coolhead.evaluate import evaluate_domains

DATA = ch.datasets.simulate_domains([1.0, 1.5, 2.0], n_rows=200)
GIVEN = {"features": DATA.features, "sample_domain": DATA.domains}


@pytest.fixture(scope="module")
def auto():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return ch.AutoCalibrator().fit(DATA.logits, DATA.labels, **GIVEN)


@pytest.fixture(scope="module")
def results(auto):
    """Everything a user of the library gets back, by name."""
    scaling = ch.TemperatureScaling().fit(DATA.logits, DATA.labels)
    said = {
        "set-level": scaling.predict_proba(DATA.logits),
        "auto": auto.predict_proba(DATA.logits, DATA.features),
    }
    there = ch.NewDomain(auto, DATA.logits[:150], DATA.features[:150])
    monitor = ch.DriftMonitor.for_calibrator(auto)
    monitor.update(auto.details(DATA.logits, DATA.features))
    return {
        "temperature scaling": scaling,
        "auto": auto,
        "evidence": auto.evidence_,
        "bootstrap": ch.paired_bootstrap(DATA.labels, said, n_draws=50),
        "paired": ch.paired_bootstrap(
            DATA.labels, said, baseline="set-level", n_draws=50
        ),
        "curve": ch.reliability_curve(DATA.labels, said["auto"]),
        "risk": ch.metrics.risk_coverage_curve(DATA.labels, said["auto"]),
        "new domain": there,
        "threshold": there.threshold(accuracy=0.7),
        "sets": there.sets(0.7),
        "comparison": compare_methods(
            DATA, {"set-level": ch.TemperatureScaling()}, n_draws=50
        ),
        "evaluation": evaluate_domains(auto, DATA, n_draws=50),
        "monitor": monitor,
        "signal": monitor.check(),
        "finding": monitor.check().findings[0],
    }


class Tags(HTMLParser):
    """Checks that every tag is closed in order."""

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_every_result_is_short(results):
    for name, result in results.items():
        text = repr(result)
        assert len(text.splitlines()) <= MOST_ROWS + 3, name
        assert len(text) < 2_000 and max(map(len, text.splitlines())) < 400, name
        assert "array(" not in text, name


def test_every_result_is_html_in_a_notebook(results):
    for name, result in results.items():
        html = result._repr_html_()
        parser = Tags()
        parser.feed(html)
        assert not parser.open, name
        assert len(html) < 8_000, name


def test_a_fitted_calibrator_says_what_it_learned(auto):
    scaling = ch.TemperatureScaling()
    assert repr(scaling) == "TemperatureScaling()"
    scaling.fit(DATA.logits, DATA.labels)
    found = f"T = {scaling.temperature_:.3g}"
    assert repr(scaling) == f"TemperatureScaling(): {found}, converged"
    html = auto._repr_mimebundle_()["text/html"]
    assert "3: site-0 (200), site-1 (200), site-2 (200)" in html
    assert "class offsets" in html and "status" in html
    assert repr(auto).endswith("3 domains")


def test_a_classifier_is_described_by_its_calibrator():
    model = ch.CalibratedClassifier(
        LogisticRegression(), ch.TemperatureScaling(), features=None
    )
    shown = repr(model)
    model.fit(DATA.features, DATA.labels, sample_domain=DATA.domains)
    assert repr(model).startswith(f"{shown}: T = ")
    assert model.calibrator_.status_ in model._repr_mimebundle_()["text/html"]


def test_before_the_fit_scikit_learn_draws_its_diagram():
    shown = ch.TemperatureScaling()._repr_mimebundle_()
    assert "sk-" in shown["text/html"]


def test_internals_are_not_completed(auto):
    hidden = {"fit_data", "fit_part", "note_shapes", "note_masked"}
    assert not hidden & set(dir(auto))
    assert {"fit", "predict_proba", "temperature", "evidence_"} <= set(dir(auto))


def test_numbers_of_the_tables(results):
    found = results["paired"]
    line = repr(found).splitlines()[-1].split()
    assert line[0] == "auto"
    assert float(line[1]) == pytest.approx(found.estimates["auto"].estimate, rel=1e-3)
    assert line[-1] == f"{found.p_values['auto']:.3g}"
    rows = repr(results["evidence"]).splitlines()
    assert len(rows) == 2 + 3 and rows[2].split()[:2] == ["site-0", "200"]
    ece = results["curve"].expected_calibration_error
    assert f"600 rows, ECE {ece:.4f}" in repr(results["curve"])
    assert "uncalibrated" in repr(results["comparison"])
    assert isinstance(results["comparison"], list)


def test_hostile_names_are_text_and_long_tables_are_cut():
    rows = [(f"<b>{number}</b>", "1") for number in range(MOST_ROWS + 5)]
    summary = Summary("<script>", ("name", "value"), rows)
    html = as_html(summary)
    assert "<b>" not in html and "<script>" not in html
    assert "… and 5 more rows" in html
    assert as_text(summary).splitlines()[-1] == "… and 5 more rows"
    assert as_text(Summary("alone")) == "alone"


def test_columns_are_aligned():
    text = as_text(Summary("t", ("name", "x"), [("a", "1.5"), ("longer", "10.25")]))
    assert text.splitlines()[1:] == ["name        x", "a         1.5", "longer  10.25"]
    assert np.unique([len(line) for line in text.splitlines()[1:]]).size == 1
