"""A calibrator moved to one domain, as a torch module."""

from torch import Tensor, nn

from coolhead.calibrators.offset import OffsetTemperature
from coolhead.torch.calibrated.temperature import Exact, temperature_module


class Moved(Exact):
    """Another module's T(x), with log T moved and stretched around its middle."""

    offset: Tensor
    slope: Tensor
    middle: Tensor

    def __init__(self, base: nn.Module, calibrator: OffsetTemperature):
        super().__init__()
        self.base = base
        self.keep(
            offset=calibrator.offset, slope=calibrator.slope, middle=calibrator.middle
        )

    def forward(self, logits: Tensor, features: Tensor | None = None) -> Tensor:
        line = self.base(logits, features).log() - self.middle
        return (self.middle + self.offset + self.slope * line).exp()


@temperature_module.register
def _(calibrator: OffsetTemperature) -> nn.Module:
    return Moved(temperature_module(calibrator.base), calibrator)
