"""Seeds for code of others that draws from torch's global generator."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


@contextmanager
def forked_random(*seeds: int) -> Iterator[None]:
    """Seed torch's global generator, and give it its old state back afterwards."""
    with torch.random.fork_rng():
        torch.manual_seed(int(np.random.SeedSequence(seeds).generate_state(1)[0]))
        yield
