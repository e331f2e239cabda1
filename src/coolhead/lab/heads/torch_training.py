"""The loss of one batch: empirical risk, or MLDG's risk after an inner step."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch

from coolhead.lab.heads.settings import BestEpoch, ErmSettings, MldgSettings
from coolhead.lab.heads.train import TrainingRows, balanced_batches, domain_pools
from coolhead.numerics.blocks import row_blocks

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


Parameters = list[torch.Tensor]


def initial_parameters(sizes: Sequence[int], rng: np.random.Generator) -> Parameters:
    """Return [weight, bias, weight, bias, …]; weights are (out, in).

    Uniform within 1/sqrt(in), the range torch's own linear layer starts from.
    """
    parameters = []
    for n_in, n_out in pairwise(sizes):
        for shape in ((n_out, n_in), (n_out,)):
            values = (2 * rng.random(shape, np.float32) - 1) / np.float32(n_in**0.5)
            parameters.append(torch.from_numpy(values).requires_grad_())
    return parameters


def forward(
    parameters: Sequence[torch.Tensor],
    inputs: torch.Tensor,
    dropout: float = 0.0,
    rng: np.random.Generator | None = None,
) -> torch.Tensor:
    """Return the logits (n, k) of standardised inputs (n, d).

    Hidden units are dropped only when `rng` is given, as in training.
    """
    hidden = inputs
    last = len(parameters) - 2
    for layer in range(0, last, 2):
        hidden = torch.nn.functional.linear(
            hidden, parameters[layer], parameters[layer + 1]
        ).relu()
        if dropout and rng is not None:
            kept = rng.random(hidden.shape, np.float32) >= dropout
            hidden = hidden * torch.from_numpy(kept) / (1 - dropout)
    return torch.nn.functional.linear(hidden, parameters[last], parameters[last + 1])


def loss_and_accuracy(
    parameters: Sequence[torch.Tensor],
    inputs: "StandardisedRows",
    rows: np.ndarray,
) -> tuple[float, float]:
    """Return mean log-loss and accuracy over `rows`, in blocks."""
    total, correct = 0.0, 0
    with torch.no_grad():
        for block in row_blocks(rows.size, inputs.features.shape[1]):
            x, y = inputs.batch(rows[block])
            logits = forward(parameters, x)
            loss = torch.nn.functional.cross_entropy(logits, y, reduction="sum")
            total += float(loss)
            correct += int((logits.argmax(1) == y).sum())
    return total / rows.size, correct / rows.size


class StandardisedRows(NamedTuple):
    """Rows of an archive as tensors, standardised batch by batch.

    The features stay where they are (perhaps float16 in a mapped file), so training
    needs memory for one batch only.
    """

    features: np.ndarray
    labels: np.ndarray
    center: np.ndarray
    scale: np.float32

    def batch(self, rows: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        """Return inputs (b, d) float32 and labels (b,) int64."""
        x = (self.features[rows] - self.center) / self.scale
        x = torch.from_numpy(np.asarray(x, dtype=np.float32))
        return x, torch.from_numpy(np.asarray(self.labels[rows], dtype=np.int64))


def train_network(
    inputs: StandardisedRows,
    rows: TrainingRows,
    n_classes: int,
    settings: ErmSettings,
    random_state: int,
) -> tuple[Parameters, list[dict], ErmSettings]:
    """Train a head; return its parameters, learning curve and the settings used."""
    if not isinstance(settings, MldgSettings) or settings.inner_step is not None:
        return (*_train(inputs, rows, n_classes, settings, random_state), settings)
    if rows.small.size == 0:
        raise ValueError(
            "inner_step=None is chosen on Small rows: give small= or an inner_step"
        )
    tried = []
    for step in settings.inner_steps:
        used = replace(settings, inner_step=step)
        parameters, curve = _train(inputs, rows, n_classes, used, random_state)
        loss, _ = loss_and_accuracy(parameters, inputs, rows.small)
        tried.append((loss, parameters, curve, used))
    return min(tried, key=lambda trial: trial[0])[1:]


def _train(
    inputs: StandardisedRows,
    rows: TrainingRows,
    n_classes: int,
    settings: ErmSettings,
    random_state: int,
) -> tuple[Parameters, list[dict]]:
    rng = np.random.default_rng(random_state)
    sizes = [inputs.features.shape[1], *settings.hidden, n_classes]
    parameters = initial_parameters(sizes, rng)
    risk = batch_risk(settings, rng)
    optimizer = torch.optim.AdamW(
        parameters,
        lr=settings.learning_rate,
        weight_decay=settings.weight_decay,
        fused=True,  # one pass over the parameters instead of ten
    )
    batches = balanced_batches(training_pools(rows, settings), settings.batch_size, rng)
    n_steps = -(-rows.train.size // settings.batch_size)
    watch = BestEpoch(settings.patience)
    for epoch in range(1, settings.epochs + 1):
        total = 0.0
        for _ in range(n_steps):
            optimizer.zero_grad()
            loss = risk(parameters, [inputs.batch(pool) for pool in next(batches)])
            loss.backward()
            optimizer.step()
            total += loss.item()
        record = {"epoch": epoch, "loss": total / n_steps}
        if watch.is_over(record | small_scores(parameters, inputs, rows), parameters):
            break
    return watch.result(parameters), watch.curve


def small_scores(
    parameters: Parameters, inputs: StandardisedRows, rows: TrainingRows
) -> dict[str, float]:
    """Return the loss and accuracy on the Small rows, nothing without such rows."""
    if rows.small.size == 0:
        return {}
    loss, accuracy = loss_and_accuracy(parameters, inputs, rows.small)
    return {"small_loss": loss, "small_accuracy": accuracy}


def training_pools(rows: TrainingRows, settings: ErmSettings) -> list[np.ndarray]:
    """Return one pool per source domain, or one of all rows for plain batches."""
    if settings.balance_domains or isinstance(settings, MldgSettings):
        return domain_pools(rows.train, rows.domains)
    return [rows.train]


def batch_risk(
    settings: ErmSettings, rng: np.random.Generator
) -> Callable[..., torch.Tensor]:
    """Return the function (parameters, batches) → loss that `settings` ask for."""

    def network(parameters, inputs):
        return forward(parameters, inputs, settings.dropout, rng)

    if not isinstance(settings, MldgSettings):
        return partial(empirical_risk, network)
    inner_step = 0.0 if settings.inner_step is None else settings.inner_step

    def mldg(parameters, batches):
        train, test = divide_domains(len(batches), settings.meta_test, rng)
        return mldg_risk(
            network,
            parameters,
            [batches[i] for i in train],
            [batches[i] for i in test],
            inner_step=inner_step,
            beta=settings.beta,
            second_order=settings.second_order,
        )

    return mldg
