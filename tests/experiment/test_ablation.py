"""Fewer calibration rows, other numbers of domains, other bins."""

import numpy as np
import polars as pl
import pytest
from small_world import DOMAINS, make_archive

from coolhead.calibrators.temperature import TemperatureScaling
from coolhead.lab.ablation import some_of_each_domain
from coolhead.lab.cell import evaluate_cell
from coolhead.lab.plan import Split
from coolhead.lab.protocol import Ablation, EvaluationSettings, Methods
from coolhead.metrics import expected_calibration_error
from coolhead.metrics.scored import score_calibrated

SPLIT = Split(DOMAINS[:1], DOMAINS[1:3], DOMAINS[3:4])
METHODS = Methods(names=("uncalibrated", "set-level", "ensemble"), clusters=3)
EVALUATION = EvaluationSettings(size=40, draws=5, bootstrap=10)
EVERYTHING = Ablation(rows=(0.2, 1.0), domains=(1, 2, 3), bins=(10, 15))


@pytest.fixture(scope="module")
def world():
    archive = make_archive()
    small = np.random.default_rng(0).random(len(archive)) < 0.5
    cell = evaluate_cell(
        archive, small, SPLIT, METHODS, EVALUATION, ablation=EVERYTHING
    )
    assert not cell.failed
    return archive, small, pl.DataFrame(cell.tables["ablation"])


def eces(table, **where):
    return table.filter(**where)["ece"].to_list()


def ece_of_set_level(archive, small, domains):
    rows = archive.rows(small).select(*domains)
    target = archive.rows(~small).select(*SPLIT.target)
    fitted = TemperatureScaling().fit(rows.logits, rows.labels)
    found = score_calibrated(fitted, target.logits, target.labels, target.features)
    return expected_calibration_error(found.correct, found.confidence)


def test_all_rows_are_the_method_itself(world):
    archive, small, table = world
    wanted = ece_of_set_level(archive, small, SPLIT.calibration)
    for what, level in (("rows", "100%"), ("domains", "2"), ("bins", "15")):
        found = eces(table, what=what, level=level, method="set-level")
        assert found == [pytest.approx(wanted, rel=1e-6)]


def test_every_choice_of_domains_is_fitted(world):
    archive, small, table = world
    one = eces(table, what="domains", level="1", method="set-level")
    wanted = [ece_of_set_level(archive, small, [name]) for name in SPLIT.calibration]
    assert one == pytest.approx(wanted, rel=1e-6)
    three = eces(table, what="domains", level="3", method="set-level")
    wanted = ece_of_set_level(archive, small, SPLIT.calibration + SPLIT.source)
    assert three == [pytest.approx(wanted, rel=1e-6)]


def test_fewer_rows_and_other_bins_give_other_errors(world):
    *_, table = world
    few = eces(table, what="rows", level="20%", method="set-level")
    assert few != eces(table, what="rows", level="100%", method="set-level")
    levels = set(table.filter(what="bins", method="uncalibrated")["level"])
    assert levels == {"10", "10, equal mass", "15", "15, equal mass"}


def test_smaller_shares_are_parts_of_larger_ones():
    codes = np.repeat([0, 1], [100, 9])
    few, many = (some_of_each_domain(codes, share, 3) for share in (0.05, 0.5))
    assert set(few) < set(many)
    assert np.bincount(codes[few]).tolist() == [5, 1]
    assert np.array_equal(some_of_each_domain(codes, 1.0, 3), np.arange(109))


def test_nothing_is_varied_by_default():
    archive = make_archive()
    small = np.random.default_rng(0).random(len(archive)) < 0.5
    cell = evaluate_cell(archive, small, SPLIT, METHODS, EVALUATION)
    assert cell.tables["ablation"] == []
