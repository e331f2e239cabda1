"""Can I trust it here? Expected accuracy, rows to label, thresholds and sets."""

from coolhead.extras import lazy_names

__getattr__, __dir__, __all__ = lazy_names(  # pyright: ignore
    "coolhead.new_domain",
    {
        "domain": ["NewDomain"],
        "knowledge": ["Evidence", "learn_evidence"],
        "sets": ["PredictionSets"],
        "temperature": ["Threshold"],
        "verdict": ["Verdict"],
    },
)
