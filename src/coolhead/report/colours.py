"""Numbers as colours: steps of the heat map, temperatures of the feature map."""

from collections.abc import Sequence
from math import log

# Dark violet to warm yellow, monotone in lightness: grey print keeps the order.
WARMTH = ("#41108f", "#7a1fa2", "#b0308c", "#d9576b", "#f0854b", "#f5b13d")
STEPS = 5


def heat_step(change: float, largest: float) -> str:
    """CSS class of a change of the ECE: b1…b5 better, w1…w5 worse, z about equal."""
    if largest <= 0 or abs(change) < 0.05:
        return "z"
    size = min(STEPS, 1 + int(STEPS * abs(change) / largest))
    return f"{'w' if change > 0 else 'b'}{size}"


def temperature_colours(
    values: Sequence[float], lowest: float, highest: float
) -> list[str]:
    """Colours of temperatures between the lowest and the highest of a figure.

    Equal factors are equal steps: one very hot cluster leaves the others their colours.
    """
    room = log(highest / lowest)
    last = len(WARMTH) - 1
    shares = [log(value / lowest) / room if room > 0 else 0.5 for value in values]
    return [WARMTH[min(last, int(share * len(WARMTH)))] for share in shares]
