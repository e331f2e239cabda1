"""MLDG's gradient against finite differences of its own definition."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from coolhead.io.archive import DomainArchive
from coolhead.lab.heads.torch_training import (
    divide_domains,
    forward,
    initial_parameters,
    mldg_risk,
)
from coolhead.lab.heads.train import train_head


def tanh_network(parameters, inputs):
    """A smooth network: finite differences do not cross the kinks of ReLU."""
    w, b, v, c = parameters
    return torch.tanh(inputs @ w.T + b) @ v.T + c


@pytest.fixture
def problem():
    generator = torch.Generator().manual_seed(0)
    parameters = [
        p.detach().double().requires_grad_()
        for p in initial_parameters([4, 5, 3], np.random.default_rng(0))
    ]
    batches = [
        (
            torch.randn(8, 4, generator=generator).double() + shift,
            torch.randint(3, (8,), generator=generator),
        )
        for shift in (0.0, 0.5, 1.0, 1.5)
    ]
    return parameters, batches


def numerical_gradient(function, parameters, step=1e-5):
    flat = torch.cat([p.detach().reshape(-1) for p in parameters])
    shapes = [p.shape for p in parameters]

    def value(vector):
        parts = torch.split(vector, [shape.numel() for shape in shapes])
        return function(
            [
                part.reshape(shape).requires_grad_()
                for part, shape in zip(parts, shapes, strict=True)
            ]
        ).item()

    units = step * torch.eye(flat.numel(), dtype=flat.dtype)
    return torch.tensor(
        [(value(flat + u) - value(flat - u)) / (2 * step) for u in units]
    )


def gradient(loss, parameters):
    found = torch.autograd.grad(loss, parameters)
    return torch.cat([g.reshape(-1) for g in found])


def test_second_order_gradient_is_exact(problem):
    parameters, batches = problem

    def risk(p, **options):
        return mldg_risk(
            tanh_network, p, batches[:2], batches[2:], inner_step=0.5, **options
        )

    wanted = numerical_gradient(risk, parameters)
    exact = gradient(risk(parameters), parameters)
    torch.testing.assert_close(exact, wanted.double(), rtol=1e-5, atol=1e-8)
    first = gradient(risk(parameters, second_order=False), parameters)
    assert torch.linalg.norm(first - wanted) > 0.02 * torch.linalg.norm(wanted)


def test_first_order_gradient_is_the_sum_of_two_plain_ones(problem):
    parameters, batches = problem
    risk = mldg_risk(
        tanh_network,
        parameters,
        batches[:1],
        batches[1:2],
        inner_step=0.3,
        beta=2.0,
        second_order=False,
    )
    plain = [
        torch.nn.functional.cross_entropy(tanh_network(parameters, x), y)
        for x, y in batches[:1]
    ]
    slopes = torch.autograd.grad(plain[0], parameters)
    moved = [
        (p - 0.3 * g).detach().requires_grad_()
        for p, g in zip(parameters, slopes, strict=True)
    ]
    x, y = batches[1]
    after = torch.nn.functional.cross_entropy(tanh_network(moved, x), y)
    wanted = torch.cat([g.reshape(-1) for g in slopes])
    wanted = wanted + 2.0 * gradient(after, moved)
    torch.testing.assert_close(gradient(risk, parameters), wanted)


def test_forward_is_the_module_torch_would_build(problem):
    _, batches = problem
    parameters = initial_parameters([4, 6, 3], np.random.default_rng(1))
    module = torch.nn.Sequential(
        torch.nn.Linear(4, 6), torch.nn.ReLU(), torch.nn.Linear(6, 3)
    )
    with torch.no_grad():
        for own, value in zip(module.parameters(), parameters, strict=True):
            own.copy_(value)
    x = batches[0][0].float()
    torch.testing.assert_close(forward(parameters, x), module(x))


def test_dropout_keeps_the_mean_and_drops_its_share():
    parameters = [
        torch.ones(2000, 1),
        torch.zeros(2000),
        torch.eye(2000),
        torch.zeros(1),
    ]
    out = forward(parameters, torch.ones(50, 1), 0.3, np.random.default_rng(0))
    assert float((out == 0).float().mean()) == pytest.approx(0.3, abs=0.01)
    assert float(out.mean()) == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize(
    ("n", "held_out", "sizes"),
    [(4, None, (2, 2)), (3, None, (2, 1)), (4, 1, (3, 1))],
)
def test_domains_are_divided(n, held_out, sizes):
    train, test = divide_domains(n, held_out, np.random.default_rng(0))
    assert (len(train), len(test)) == sizes
    assert sorted([*train, *test]) == list(range(n))


def test_too_many_meta_test_domains():
    with pytest.raises(ValueError, match=r"meta_test must lie in 1\.\.1; found 2"):
        divide_domains(2, 2, np.random.default_rng(0))


def test_inner_step_is_the_best_on_small():
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=300)
    archive = DomainArchive(
        features=rng.normal(size=(300, 6)) + 2 * np.eye(3, 6)[labels],
        labels=labels,
        domains=np.repeat(["a", "b", "c"], 100),
    )
    small = rng.random(300) < 0.3
    common = {"small": small, "epochs": 3, "hidden": 8, "kind": "mldg"}
    head = train_head(archive, ["a", "b", "c"], **common)
    losses = {
        step: train_head(archive, ["a", "b", "c"], inner_step=step, **common).curve[-1][
            "small_loss"
        ]
        for step in (0.01, 0.1, 0.5)
    }
    assert head.settings["inner_step"] == min(losses, key=losses.__getitem__)
    assert head.curve[-1]["small_loss"] == min(losses.values())
