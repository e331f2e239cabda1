"""Names of groups and domains, and values that are none."""

import numpy as np
import pandas as pd
import pytest

import coolhead as ch
from simulate import logits_and_labels

LOGITS, LABELS = logits_and_labels(300, 3, scale=2.0)


def test_integers_in_an_object_array_stay_integers():
    groups = np.array([10, 9, 2] * 100, dtype=object)
    fit = ch.fit_temperature(LOGITS, LABELS, groups=groups)
    np.testing.assert_array_equal(fit.groups, [2, 9, 10])
    plain = ch.fit_temperature(LOGITS, LABELS, groups=groups.astype(int))
    np.testing.assert_array_equal(fit.temperature, plain.temperature)


@pytest.mark.parametrize(
    "missing", [None, float("nan"), pd.NA, pd.NaT], ids=["None", "nan", "NA", "NaT"]
)
def test_a_missing_name_is_refused_with_its_row(missing):
    names = np.array(["a", missing, "b"] * 100, dtype=object)
    with pytest.raises(ValueError, match="groups has no name in row 1"):
        ch.fit_temperature(LOGITS, LABELS, groups=names)
    with pytest.raises(ValueError, match="sample_domain has no name in row 1"):
        ch.TemperatureScaling().fit(LOGITS, LABELS, sample_domain=names)


def test_a_group_called_nan_is_a_group():
    fit = ch.fit_temperature(LOGITS, LABELS, groups=["nan", "a", "b"] * 100)
    np.testing.assert_array_equal(fit.groups, ["a", "b", "nan"])


def test_masked_entries_are_refused():
    masked = np.ma.masked_array(LOGITS, mask=LOGITS > 3)
    with pytest.raises(ValueError, match="logits has masked entries"):
        ch.fit_temperature(masked, LABELS)
    whole = np.ma.masked_array(LOGITS, mask=False)
    assert ch.fit_temperature(whole, LABELS).status == "converged"
