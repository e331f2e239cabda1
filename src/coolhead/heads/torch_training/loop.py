"""The training loop that ERM and MLDG share."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import torch

from coolhead.heads.curve import BestEpoch
from coolhead.heads.settings import ErmSettings, MldgSettings
from coolhead.heads.torch_training.batches import (
    TrainingRows,
    balanced_batches,
    domain_pools,
)
from coolhead.heads.torch_training.network import (
    Parameters,
    StandardisedRows,
    forward,
    initial_parameters,
    loss_and_accuracy,
)
from coolhead.heads.torch_training.objectives import (
    divide_domains,
    empirical_risk,
    mldg_risk,
)


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
