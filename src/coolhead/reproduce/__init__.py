"""From a folder of images to the paper's tables: what is to do, and doing it."""

from coolhead.reproduce.ledger import Ledger
from coolhead.reproduce.steps import Recipe, Step, plan_steps

__all__ = ["Ledger", "Recipe", "Step", "plan_steps"]
