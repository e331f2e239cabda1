"""A calibrator moved to one domain, as a torch module."""

from torch import Tensor

from coolhead.calibrators.offset import OffsetTemperature
from coolhead.torch.calibrated.temperature import Exact, temperature_module


class Moved(Exact):
    """Another module's T(x), with log T moved and stretched around its middle."""

    def __init__(self, calibrator: OffsetTemperature):
        super().__init__()
        self.base = temperature_module(calibrator.base)
        self.keep(
            offset=calibrator.offset, slope=calibrator.slope, middle=calibrator.middle
        )

    def forward(self, logits: Tensor, features: Tensor | None = None) -> Tensor:
        line = self.base(logits, features).log() - self.middle
        return (self.middle + self.offset + self.slope * line).exp()


temperature_module.register(OffsetTemperature, Moved)
