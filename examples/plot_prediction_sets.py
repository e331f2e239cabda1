"""
Prediction sets and their guarantees
====================================

A set of classes contains the true class more often than a single prediction does. With
two left-out domains the coverage of a new domain can be guaranteed up to two thirds.
The usual method pools all rows and guarantees nothing for a new domain.
"""

# %%
import matplotlib.pyplot as plt

import coolhead as ch

data = ch.load_dataset("digits")
data = data.rows(range(0, len(data), 4))
names = data.domain_names
found = {promise: [] for promise in ("pooled", "every_domain", "new_domain")}
for target in names:
    source = names[names.index(target) - 1]
    scored = ch.train_head(data, source).apply(data)
    seen = scored.select(*(name for name in names if name not in (source, target)))
    new = scored.select(target)
    cal = ch.TemperatureScaling(domain_weights="equal")
    cal.fit(seen.logits, seen.labels, sample_domain=seen.domains)
    evidence = ch.new_domain.learn_evidence(
        cal, seen.logits, seen.labels, sample_domain=seen.domains
    )
    there = ch.NewDomain(cal, new.logits, evidence=evidence)
    for promise, rows in found.items():
        sets = there.sets(0.66, promise=promise)
        hit = sets.members[range(len(new)), new.labels].mean()
        rows.append((100 * hit, sets.sizes.mean()))
        print(f"{target:6} {promise:13} contains the true class in {hit:.0%}, {sets}")

# %%
figure, axis = plt.subplots(figsize=(6.4, 3.8))
for (promise, rows), marker in zip(found.items(), "os^", strict=True):
    hits, sizes = zip(*rows, strict=True)
    axis.plot(sizes, hits, marker, ms=9, alpha=0.7, label=promise.replace("_", " "))
axis.axhline(66, color="grey", linestyle=":")
axis.set(xlabel="classes in a set, on average", ylabel="contains the true class (%)")
axis.set_title("four targets, three guarantees of 66 %")
axis.legend(loc="lower right")
figure.tight_layout()
