"""Calibrators that remember what they were shown."""

from coolhead.calibrators.temperature import TemperatureScaling


def seen_in(data):
    beside = {name: getattr(data, name) for name in ("features", "reference", "target")}
    found = {name for name, value in beside.items() if value is not None}
    return found | ({"source"} if data.domains.is_source.any() else set())


class BlindSpy(TemperatureScaling):
    def _learn(self, data):
        self.seen = seen_in(data)
        super()._learn(data)


class GreedySpy(BlindSpy):
    takes = ("features", "source", "reference", "target")


class ForeignSpy:
    """No calibrator of ours: it declares nothing, so it gets rows and labels."""

    def get_params(self, deep=True):
        return {}

    def set_params(self, **settings):
        return self

    def fit(self, logits, labels, **others):
        self.seen = set(others)
        return self
