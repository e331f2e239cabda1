"""Files that version 0.2.0 wrote load, predict and enter new domains as they did."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

import coolhead as ch
from contract.problems import ordinary_problem

FILES = zipfile.ZipFile(Path(__file__).with_name("saved_by_0_2_0.zip"))
NAMES = [name[:-6] for name in FILES.namelist() if name.endswith(".skops")]
EXPECTED = np.load(io.BytesIO(FILES.read("expected.npz")))


def load(name, folder):
    path = folder / "cal.skops"
    path.write_bytes(FILES.read(f"{name}.skops"))
    return ch.load_calibrator(path)


def test_every_kind_of_calibrator_is_there():
    assert len(NAMES) > 40


@pytest.mark.parametrize("name", NAMES)
def test_they_predict_as_before(name, tmp_path):
    cal = load(name, tmp_path)
    if name == "CalibratedClassifier":
        found = cal.predict_proba(EXPECTED["features"])
    else:
        features = EXPECTED["features"] if cal.uses_features else None
        found = cal.predict_proba(EXPECTED["logits"], features)
    np.testing.assert_allclose(found, EXPECTED[name], rtol=1e-5, atol=1e-7)
    again = tmp_path / "again.skops"
    ch.save_calibrator(cal, again)
    assert type(ch.load_calibrator(again)) is type(cal)


@pytest.mark.parametrize("name", [n for n in NAMES if f"{n}.accuracy" in EXPECTED])
def test_their_evidence_serves_new_domains(name, tmp_path, monkeypatch):
    problem = ordinary_problem(n_rows=180)
    # The default spread of domains is wider now; all else is as it was.
    monkeypatch.setattr("coolhead.new_domain.accuracy.INTERVAL_SCALE", 0.35)
    there = ch.NewDomain(load(name, tmp_path), problem["logits"], problem["features"])
    found = there.accuracy
    np.testing.assert_allclose(
        [found.estimate, found.low, found.high],
        EXPECTED[f"{name}.accuracy"],
        atol=1e-6,
    )
