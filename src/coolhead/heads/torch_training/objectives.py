"""The loss of one batch: empirical risk, or MLDG's risk after an inner step."""

from collections.abc import Callable, Sequence

import numpy as np
import torch

Batch = tuple[torch.Tensor, torch.Tensor]
Network = Callable[[Sequence[torch.Tensor], torch.Tensor], torch.Tensor]


def empirical_risk(
    network: Network, parameters: Sequence[torch.Tensor], batches: Sequence[Batch]
) -> torch.Tensor:
    """Return the mean cross-entropy over all rows of the `batches`."""
    inputs = torch.cat([x for x, _ in batches])
    labels = torch.cat([y for _, y in batches])
    return torch.nn.functional.cross_entropy(network(parameters, inputs), labels)


def mldg_risk(
    network: Network,
    parameters: Sequence[torch.Tensor],
    meta_train: Sequence[Batch],
    meta_test: Sequence[Batch],
    *,
    inner_step: float,
    beta: float = 1.0,
    second_order: bool = True,
) -> torch.Tensor:
    """Return F(θ) + β G(θ − α ∇F(θ)), ready for ``backward``.

    F is the risk on the meta-train domains, G on the meta-test domains, α the inner
    step. With ``second_order`` the gradient runs through ∇F(θ) as well, which is
    exact; without, ∇F(θ) is taken as a constant.
    """
    risk = empirical_risk(network, parameters, meta_train)
    slopes = torch.autograd.grad(
        risk, parameters, create_graph=second_order, retain_graph=True
    )
    moved = [p - inner_step * g for p, g in zip(parameters, slopes, strict=True)]
    return risk + beta * empirical_risk(network, moved, meta_test)


def divide_domains(
    n_domains: int, n_meta_test: int | None, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Draw which domains are meta-train and which meta-test in one step."""
    held_out = n_domains // 2 if n_meta_test is None else n_meta_test
    if not 1 <= held_out < n_domains:
        raise ValueError(f"meta_test must lie in 1..{n_domains - 1}; found {held_out}")
    order = rng.permutation(n_domains)
    return order[:-held_out], order[-held_out:]
