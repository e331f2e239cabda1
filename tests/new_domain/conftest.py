"""A calibrator with evidence that has just come to a domain it does not know."""

import pytest

import coolhead as ch
from coolhead.new_domain import NewDomain, learn_evidence
from simulate import shifted_domains


@pytest.fixture(scope="module")
def world():
    """A fitted calibrator with evidence, and the rows of a fourth domain."""
    logits, labels, features, domains = shifted_domains(
        n=300, temperatures=(1.0, 1.5, 2.0, 2.2)
    )
    away = domains == "domain-3"
    named = {
        "features": features[~away],
        "sample_domain": domains[~away],
        "source_domain": "domain-0",
        "reference_features": features[domains == "domain-0"],
    }
    cal = ch.AutoCalibrator().fit(logits[~away], labels[~away], **named)
    cal.evidence_ = learn_evidence(cal, logits[~away], labels[~away], **named)
    return cal, logits[away], features[away], labels[away]


@pytest.fixture(scope="module")
def there(world):
    return NewDomain(*world[:3])
