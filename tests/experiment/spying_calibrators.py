"""Calibrators that remember which arguments they were given."""


class BlindSpy:
    def fit(self, logits, labels, *, sample_domain):
        self.seen = {"sample_domain"}
        return self


class GreedySpy:
    def fit(
        self,
        logits,
        labels,
        *,
        features,
        target_features,
        target_logits,
        partition,
        target_labels=None,
        reference_features=None,
    ):
        given = {
            "features": features,
            "target_features": target_features,
            "target_logits": target_logits,
            "partition": partition,
            "target_labels": target_labels,
            "reference_features": reference_features,
        }
        self.seen = {name for name, value in given.items() if value is not None}
        return self
