"""Classes that cannot be: a logit of minus infinity has probability zero.

What a module computes beside, it computes as if those classes did not exist.
"""

import torch
from torch import Tensor


def possible(logits: Tensor) -> Tensor:
    """Classes without a logit of minus infinity, (n, k) bool."""
    return logits != -torch.inf
