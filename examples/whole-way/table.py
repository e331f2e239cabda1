"""A table and a booster: new domain, 20 labels, monitored, saved, loaded, served."""

import lightgbm
from flights import known, known_labels, new, new_labels

import coolhead as ch

model = ch.CalibratedClassifier(lightgbm.LGBMClassifier(n_estimators=30, verbose=-1))
model.fit(known, known_labels, sample_domain="carrier")

there = model.new_domain(new)  # other carriers, without labels
rows = there.rows_to_label(20)
there = there.with_labels(rows, new_labels[rows])
print(there.verdict(need=0.75))

watch = model.monitor()
watch.update(model.details(new))
print(watch.check())

there.model.save("model.skops")
served = ch.load_calibrator("model.skops", trusted=["lightgbm"])
print(served.predict_proba(new[:2]))
