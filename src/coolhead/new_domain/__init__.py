"""Can I trust it here? Expected accuracy, rows to label, thresholds and sets."""

from coolhead.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(  # pyright: ignore
    "coolhead.new_domain",
    {
        "domain": ["NewDomain"],
        "evidence": ["Evidence", "learn_evidence"],
        "sets": ["PredictionSets"],
        "threshold": ["Threshold"],
    },
)
