"""
A calibrated scikit-learn pipeline
==================================

Three simulated clinics measure the same disease with different instruments. The
pipeline is calibrated on predictions for clinics it was not fitted on.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import coolhead as ch

X, y = make_classification(3000, 12, n_informative=6, flip_y=0.15, random_state=0)
site = np.array(["rome", "oslo", "kyiv"])[np.arange(3000) % 3]
X[site == "oslo"] += 0.8
X[site == "kyiv"] *= 1.7

# %%
# Logits come from the pipeline's decision function, features from one of its steps.
pipeline = make_pipeline(StandardScaler(), PCA(5), LogisticRegression())
model = ch.CalibratedClassifier(
    pipeline, ch.NearestClusterTemperature(4), features="pca"
)
model.fit(X, y, sample_domain=site)
print(model.calibrator_.cluster_temperatures_, model.calibrator_.status_)

# %%
# With `source`, the estimator is fitted on some domains and calibrated on the others.
model = ch.CalibratedClassifier(pipeline, source=["rome"]).fit(X, y, sample_domain=site)
print(f"T = {model.calibrator_.temperature_:.2f}, {model.calibrator_.status_}")
print(f"ECE {ch.expected_calibration_error(y, model.predict_proba(X)):.3f}")

# %%
# A reliability diagram for each clinic.
figure, axes = plt.subplots(1, 3, figsize=(10, 3.6), sharey=True)
for axis, name in zip(axes, ("rome", "oslo", "kyiv"), strict=True):
    rows = site == name
    ch.reliability_curve(y[rows], model.predict_proba(X[rows])).plot(axis)
    axis.set_title(name)
figure.tight_layout()
