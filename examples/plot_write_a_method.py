"""
Write your own method
=====================

A method is a function T(x) > 0. This one learns how the temperature grows with the
distance from the calibration data's centre, in five rings.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

import coolhead as ch
from coolhead.calibrators import CalibrationData, TemperatureCalibrator


class Rings(TemperatureCalibrator):
    """A temperature for each of five rings around the centre of the features."""

    takes = ("features",)
    uses_features = True  # predictions need features, too

    def _learn(self, data: CalibrationData) -> None:
        self.centre_ = data.features.mean(axis=0)
        far = self._distance(data.features)
        self.edges_ = np.quantile(far, [0.2, 0.4, 0.6, 0.8])
        fit = ch.fit_temperature(
            data.logits, data.labels, groups=np.searchsorted(self.edges_, far)
        )
        self.temperatures_, self.status_ = fit.temperature, ", ".join(fit.status)

    def _temperature(self, logits, features):
        ring = np.searchsorted(self.edges_, self._distance(features))
        return self.temperatures_[ring]

    def _distance(self, features):
        return np.linalg.norm(features - self.centre_, axis=1)


# %%
# Checks, probabilities, confidence and details come with the base class.
data = ch.load_dataset("sentiment")
data = data.rows(range(0, len(data), 4))  # a quarter of the rows: quick to run
scored = ch.train_head(data, "amazon").apply(data)
seen, tweets = scored.select("movies", "nyt"), scored.select("tweets")
known = {"features": seen.features, "sample_domain": seen.domains}

methods = {
    "uncalibrated": ch.calibrators.Identity(),
    "set-level": ch.TemperatureScaling(),
    "rings": Rings(),
}
errors = {}
for name, method in methods.items():
    method.fit(seen.logits, seen.labels, **known)
    probabilities = method.predict_proba(tweets.logits, tweets.features)
    errors[name] = 100 * ch.expected_calibration_error(tweets.labels, probabilities)
    print(f"{name:13} ECE {errors[name]:.1f} %")

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.2))
left.bar(range(1, 6), methods["rings"].temperatures_)
left.set(xlabel="ring, from the centre outwards", ylabel="temperature")
left.set_title("temperatures")
right.barh(list(errors), list(errors.values()))
right.set(xlabel="ECE on tweets (%)")
right.set_title("error in a new domain")
figure.tight_layout()
