"""Left-out domains that were better off uncalibrated, told with figures by all."""

import re
import warnings

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.frozen import FrozenEstimator

import coolhead as ch
from contract.problems import EVERY, N_FEATURES
from coolhead.calibrators.offset import OffsetTemperature
from coolhead.cli.fit import method_names

# One domain is calibrated as it is; the two others would have it much less sure.
DATA = ch.datasets.simulate_domains([1.0, 6.0, 6.0], n_features=N_FEATURES)
LOGITS, LABELS = np.asarray(DATA.logits), np.asarray(DATA.labels)
SAID = r"\d of 3 domains, left out of the fit, were better off uncalibrated: site-0 "
SAID += r"\(NLL (0\.\d+) → (\d\.\d+)\).*; a new domain may be, too"
FITTED = {
    name: calibrator
    for name, calibrator in EVERY.items()
    if "target" not in calibrator.takes
    and not isinstance(calibrator, OffsetTemperature)
}


class Given(ClassifierMixin, BaseEstimator):
    """A classifier whose scores are the first columns of X."""

    classes_ = np.arange(3)

    def fit(self, X, y):
        return self

    def decision_function(self, X):
        return X[:, :3]


def fit_wrapper(calibrator):
    X = np.column_stack([LOGITS, DATA.features])
    model = ch.CalibratedClassifier(
        FrozenEstimator(Given()), calibrator, features=lambda _, X: X[:, 3:]
    )
    return model.fit(X, LABELS, sample_domain=DATA.domains).calibrator_


def heard(calibrator):
    """Figures of the one warning that the wrapper's fit gives, or None."""
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        fit_wrapper(calibrator)
    told = [str(each.message) for each in given]
    told = [text for text in told if "better off" in text]
    assert len(told) <= 1
    return re.fullmatch(SAID, told[0]).groups() if told else None


@pytest.mark.parametrize("name", FITTED)
def test_every_calibrator_tells_what_its_left_out_domain_met(name):
    found = heard(clone(FITTED[name]))
    if name == "Identity":
        assert found is None
        return
    assert found is not None
    if name.startswith(("AutoCalibrator", "SelectByDomain")):
        return  # Their figures are those of the weights found with all domains.
    # The same by hand: a copy that never saw site-0, asked about its rows.
    there = DATA.domains == "site-0"
    alone = clone(FITTED[name])
    alone.fit(
        LOGITS[~there],
        LABELS[~there],
        features=DATA.features[~there],
        sample_domain=DATA.domains[~there],
    )
    probabilities = alone.predict_proba(LOGITS[there], DATA.features[there])
    wanted = [
        -np.log(np.maximum(each[np.arange(there.sum()), LABELS[there]], 1e-307)).mean()
        for each in (softmax(LOGITS[there], axis=1), probabilities.astype(np.float64))
    ]
    assert [float(figure) for figure in found] == pytest.approx(wanted, abs=6e-4)


@pytest.mark.parametrize("method", method_names())
def test_coolhead_fit_tells_it_once_whatever_the_method(method, run, tmp_path):
    columns = {"features": DATA.features, "domains": DATA.domains}
    np.savez(tmp_path / "p.npz", logits=LOGITS, labels=LABELS, **columns)
    words = ["--method", method, "--out", tmp_path / "c.skops"]
    code, _, complaint = run("fit", tmp_path / "p.npz", *words)
    assert code == 0, complaint
    found = re.findall(SAID, " ".join(complaint.split()))
    assert len(found) == 1


def test_torch_tells_it():
    torch = pytest.importorskip("torch")
    loaders = {}
    for name in DATA.domain_names:
        there = DATA.domains == name
        loaders[name] = [(torch.tensor(LOGITS[there]), torch.tensor(LABELS[there]))]
    with pytest.warns(UserWarning, match=SAID):
        ch.torch.calibrate(
            torch.nn.Identity(), loaders, ch.baselines.VectorScaling(), progress=False
        )


@pytest.mark.parametrize("kind", [ch.AutoCalibrator, ch.SelectByDomain])
def test_those_who_leave_domains_out_remember_which(kind):
    given = {"features": DATA.features, "sample_domain": DATA.domains}
    with pytest.warns(UserWarning, match=SAID):
        assert kind().fit(LOGITS, LABELS, **given).harmed_ == ["site-0"]
