"""scikit-learn's own estimator checks."""

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

import coolhead as ch

# One reason for all: a logit calibrator's labels are column numbers of its logits, and
# these checks draw labels without regard to the columns, or hand them over as `y=`.
LABELS_ARE_COLUMNS = (
    "check_fit_score_takes_y",
    "check_estimators_overwrite_params",
    "check_estimators_fit_returns_self",
    "check_readonly_memmap_input",
    "check_sample_weights_pandas_series",
    "check_sample_weights_not_an_array",
    "check_sample_weights_shape",
    "check_sample_weights_not_overwritten",
    "check_sample_weight_equivalence_on_dense_data",
    "check_estimators_nan_inf",
)


# A row of weight two is not two rows to a calibrator that looks at neighbours.
NEIGHBOURS_COUNT = ("check_sample_weight_equivalence_on_dense_data",)


def impossible(estimator):
    if isinstance(estimator, ch.TemperatureScaling):
        return dict.fromkeys(LABELS_ARE_COLUMNS, "labels are columns of the logits")
    if estimator.calibrator is None:
        return dict.fromkeys(NEIGHBOURS_COUNT, "a weight is no neighbour")
    return {}


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
@parametrize_with_checks(
    [
        ch.CalibratedClassifier(LogisticRegression()),
        ch.CalibratedClassifier(LogisticRegression(), ch.TemperatureScaling()),
        ch.TemperatureScaling(),
    ],
    expected_failed_checks=impossible,
)
def test_estimator_checks(estimator, check):
    check(estimator)
