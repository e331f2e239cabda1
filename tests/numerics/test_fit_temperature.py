"""The solver: existence, accuracy, identities, bad input."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

import coolhead as ch
from simulate import logits_and_labels


def exact_temperature(logits, labels, weights=None):
    """An independent optimum: scipy's bounded search over log b in float64."""
    z = np.asarray(logits, np.float64)
    z = z - z.max(axis=1, keepdims=True)
    weights = np.ones(len(z)) if weights is None else weights

    def loss(log_b):
        b = np.exp(log_b)
        rows = logsumexp(b * z, axis=1) - b * z[np.arange(len(z)), labels]
        return weights @ rows / weights.sum()

    found = minimize_scalar(
        loss, bounds=(-8, 8), method="bounded", options={"xatol": 1e-11}
    )
    return np.exp(-found.x), found.fun


@pytest.mark.parametrize("scale", [0.05, 0.7, 1.0, 3.0, 400.0])
@pytest.mark.parametrize("k", [2, 7, 65])
def test_agrees_with_scipy(scale, k):
    logits, labels = logits_and_labels(3000, k, scale=scale)
    fit = ch.fit_temperature(logits, labels)
    best, loss = exact_temperature(logits / scale, labels)
    assert fit.status == "converged"
    assert fit.temperature == pytest.approx(best * scale, rel=2e-6)
    assert fit.nll == pytest.approx(loss, rel=1e-12)


def test_known_temperature_is_recovered_with_its_standard_error():
    errors = []
    for seed in range(40):
        logits, labels = logits_and_labels(800, 5, scale=2.5, seed=seed)
        fit = ch.fit_temperature(logits, labels)
        errors.append(np.log(fit.temperature / 2.5) / fit.log_temperature_se)
    assert abs(np.mean(errors)) < 0.6
    assert 0.7 < np.std(errors) < 1.35


def test_float32_is_within_1e_6_of_the_float64_optimum():
    logits, labels = logits_and_labels(30_000, 50, scale=2.0, dtype=np.float32)
    single = ch.fit_temperature(logits, labels)
    double = ch.fit_temperature(logits.astype(np.float64), labels)
    assert single.temperature == pytest.approx(double.temperature, rel=1e-6)


def test_groups_equal_separate_fits():
    logits, labels = logits_and_labels(6000, 10)
    groups = np.array(["b", "a", "c"])[np.arange(6000) % 3]
    logits[groups == "c"] *= 30
    together = ch.fit_temperature(logits, labels, groups=groups)
    assert together.groups.tolist() == ["a", "b", "c"]
    for name, temperature, nll in zip(
        together.groups, together.temperature, together.nll, strict=True
    ):
        alone = ch.fit_temperature(logits[groups == name], labels[groups == name])
        assert temperature == pytest.approx(alone.temperature, rel=1e-9)
        assert nll == pytest.approx(alone.nll, rel=1e-9)
    assert together.n_samples.tolist() == [2000, 2000, 2000]


def test_hundreds_of_groups_of_all_kinds():
    rng = np.random.default_rng(0)
    logits, labels = logits_and_labels(5000, 4)
    groups = rng.integers(0, 700, 5000)
    fit = ch.fit_temperature(logits, labels, groups=groups)
    assert np.isfinite(fit.temperature).all() and (fit.temperature > 0).all()
    assert set(fit.status) >= {"converged", "perfectly_separated"}
    check = np.flatnonzero(fit.status == "converged")[:20]
    for i in check:
        mine = groups == fit.groups[i]
        assert fit.temperature[i] == pytest.approx(
            exact_temperature(logits[mine], labels[mine])[0], rel=1e-4
        )


class TestExistence:
    def test_all_right(self):
        fit = ch.fit_temperature([[3.0, 0.0], [0.0, 2.0]], [0, 1])
        assert fit.status == "perfectly_separated"
        assert 0 < fit.temperature < 0.1

    def test_worse_than_uniform(self):
        fit = ch.fit_temperature([[3.0, 0.0], [0.0, 2.0]], [1, 0])
        assert fit.status == "worse_than_uniform"
        assert fit.temperature > 100

    def test_constant_rows(self):
        fit = ch.fit_temperature(np.full((4, 3), 0.1, np.float32), [0, 1, 2, 0])
        assert (fit.status, fit.temperature) == ("constant_logits", 1.0)
        assert fit.nll == pytest.approx(np.log(3), rel=1e-6)

    def test_ties_at_the_top_count_as_right(self):
        fit = ch.fit_temperature([[1.0, 1.0, 0.0], [0.0, 5.0, 1.0]], [0, 1])
        assert fit.status == "perfectly_separated"

    def test_one_sample_one_class(self):
        assert ch.fit_temperature([[1.0, 2.0]], [1]).status == "perfectly_separated"
        assert ch.fit_temperature([[1.0, 2.0]], [0]).status == "worse_than_uniform"

    def test_huge_optimum_is_reported_at_the_bound(self):
        logits = np.zeros((100_001, 2))
        logits[:, 0] = 2.0
        labels = np.zeros(100_001, int)
        labels[:50_000] = 1  # the best T is 2 / log(50001 / 50000) = 100,000
        fit = ch.fit_temperature(logits, labels)
        assert fit.status == "at_bound"
        assert fit.temperature == pytest.approx(300 * 1.0)

    def test_a_group_without_weight(self):
        logits, labels = logits_and_labels(100, 3)
        groups = np.arange(100) // 50
        fit = ch.fit_temperature(
            logits, labels, groups=groups, sample_weight=(groups == 0).astype(float)
        )
        assert fit.status.tolist() == ["converged", "too_few_samples"]
        assert fit.temperature[1] == 1.0

    def test_binary_scores_are_zero_and_s(self):
        rng = np.random.default_rng(0)
        scores = rng.normal(size=500)
        labels = (scores + rng.logistic(size=500) > 0).astype(int)
        one = ch.fit_temperature(scores, labels)
        two = ch.fit_temperature(np.column_stack([0 * scores, scores]), labels)
        assert one.temperature == two.temperature


data = st.tuples(st.integers(20, 120), st.integers(2, 8), st.integers(0, 10_000)).map(
    lambda t: logits_and_labels(t[0], t[1], seed=t[2])
)


class TestIdentities:
    @settings(max_examples=40, deadline=None)
    @given(data, st.floats(1e-6, 1e6))
    def test_scaling_the_logits_scales_the_temperature(self, sample, factor):
        logits, labels = sample
        one, other = (ch.fit_temperature(z, labels) for z in (logits, factor * logits))
        assert one.status == other.status
        assert other.temperature == pytest.approx(factor * one.temperature, rel=1e-8)

    @settings(max_examples=40, deadline=None)
    @given(data, st.integers(0, 100))
    def test_a_constant_per_row_changes_nothing(self, sample, seed):
        logits, labels = sample
        shift = 50 * np.random.default_rng(seed).normal(size=(len(labels), 1))
        one, other = (ch.fit_temperature(z, labels) for z in (logits, logits + shift))
        assert other.temperature == pytest.approx(one.temperature, rel=1e-8)

    @settings(max_examples=40, deadline=None)
    @given(data, st.integers(0, 100))
    def test_weights_are_duplication_counts(self, sample, seed):
        logits, labels = sample
        counts = np.random.default_rng(seed).integers(0, 4, len(labels))
        counts[0] = 1
        one = ch.fit_temperature(logits, labels, sample_weight=counts)
        other = ch.fit_temperature(logits.repeat(counts, 0), labels.repeat(counts))
        assert other.temperature == pytest.approx(one.temperature, rel=1e-8)
        assert other.nll == pytest.approx(one.nll, rel=1e-8)

    @settings(max_examples=40, deadline=None)
    @given(data)
    def test_never_worse_than_no_calibration(self, sample):
        logits, labels = sample
        fit = ch.fit_temperature(logits, labels)
        before = logsumexp(logits, axis=1) - logits[np.arange(len(labels)), labels]
        if fit.status == "converged":
            assert fit.nll <= before.mean() + 1e-12


class TestWhatIsAccepted:
    def test_layouts_and_types(self):
        logits, labels = logits_and_labels(200, 4)
        want = ch.fit_temperature(logits, labels).temperature
        frozen = logits.copy()
        frozen.flags.writeable = False
        wide = np.repeat(logits, 2, axis=1)[:, ::2]
        pd = pytest.importorskip("pandas")
        import polars as pl

        for given_logits in (
            frozen,
            np.asfortranarray(logits),
            wide,
            logits.tolist(),
            pd.DataFrame(logits),
            pl.DataFrame(logits),
        ):
            got = ch.fit_temperature(given_logits, labels).temperature
            assert got == pytest.approx(want, rel=1e-12)
        for given_labels in (pd.Series(labels), pl.Series(labels), labels.tolist()):
            assert ch.fit_temperature(logits, given_labels).temperature == want

    def test_integers_and_half_precision(self):
        logits, labels = logits_and_labels(300, 4)
        whole = np.round(logits).astype(int)
        assert ch.fit_temperature(whole, labels).temperature == pytest.approx(
            ch.fit_temperature(whole.astype(float), labels).temperature
        )
        half = logits.astype(np.float16)
        assert ch.fit_temperature(half, labels).temperature == pytest.approx(
            ch.fit_temperature(half.astype(float), labels).temperature, rel=1e-5
        )

    def test_extreme_logits(self):
        logits, labels = logits_and_labels(300, 4, scale=1e30, dtype=np.float32)
        fit = ch.fit_temperature(logits, labels)
        assert fit.status == "converged"
        assert 1e29 < fit.temperature < 1e31


class TestWhatIsRefused:
    logits, labels = logits_and_labels(20, 3)

    def refused(self, message, logits=None, labels=None, **rest):
        logits = self.logits if logits is None else logits
        labels = self.labels if labels is None else labels
        with pytest.raises(ValueError, match=message):
            ch.fit_temperature(logits, labels, **rest)

    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_not_finite(self, value):
        broken = self.logits.copy()
        broken[7, 1] = value
        self.refused("logits contains (NaN|infinity) in row 7", broken)

    def test_probabilities(self):
        p = np.full((20, 3), 1 / 3)
        self.refused("logits_from_probabilities", p)

    def test_labels(self):
        self.refused("3 in row 4", labels=np.where(np.arange(20) == 4, 3, 0))
        self.refused("-1 in row 0", labels=np.full(20, -1))
        self.refused("float64", labels=self.labels.astype(float))
        self.refused("19 entries", labels=self.labels[:-1])

    def test_weights(self):
        self.refused("sample_weight holds -1", sample_weight=-np.ones(20))
        self.refused("zero in every row", sample_weight=np.zeros(20))
        self.refused("sample_weight", sample_weight=np.ones(19))
        self.refused("NaN in row 3", sample_weight=np.r_[1, 1, 1, np.nan, np.ones(16)])

    def test_shapes(self):
        self.refused("0 sample", np.empty((0, 3)), [])
        self.refused("3 dimensions", np.zeros((2, 2, 2)), [0, 1])
        self.refused("minimum of 2", np.zeros((5, 1)), np.zeros(5, int))
        self.refused("groups has shape", groups=np.zeros(3))


def test_logits_from_probabilities_gives_the_same_probabilities_back():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(4), size=50)
    p[0] = [1, 0, 0, 0]
    logits = ch.logits_from_probabilities(p)
    assert np.isfinite(logits).all()
    np.testing.assert_allclose(
        np.exp(logits - logsumexp(logits, axis=1, keepdims=True)), p, atol=1e-15
    )
    with pytest.raises(ValueError, match="row 3"):
        ch.logits_from_probabilities(np.vstack([p[:3], [0.5, 0.5, 0.5, 0.5]]))
    with pytest.raises(ValueError, match="row 1"):
        ch.logits_from_probabilities([[0.5, 0.5], [np.nan, 0.5]])
