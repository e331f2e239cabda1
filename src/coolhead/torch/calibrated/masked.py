"""Classes that cannot be: a logit of minus infinity has probability zero.

What a module computes beside, it computes as if those classes did not exist.
"""

import torch
from torch import Tensor


def possible(logits: Tensor) -> Tensor:
    """Classes without a logit of minus infinity, (n, k) bool."""
    return logits != -torch.inf


def mean_logit(logits: Tensor) -> Tensor:
    """Mean of the logits of possible classes, (n, 1) float64."""
    allowed = possible(logits)
    total = torch.where(allowed, logits.double(), 0.0).sum(dim=1, keepdim=True)
    return total / allowed.sum(dim=1, keepdim=True)


def largest_logits(logits: Tensor, count: int) -> Tensor:
    """The largest logits, descending, (n, count) float64.

    Where fewer classes are possible, the smallest of them fills the rest.
    """
    exact = logits.double()
    smallest = torch.where(possible(logits), exact, torch.inf).amin(dim=1, keepdim=True)
    return torch.maximum(exact.topk(count, dim=1).values, smallest)
