"""The laboratory: everything that exists to run experiments.

Protocols, sweeps, tables and their report; heads; image folders, extraction and
fine-tuning. The library never imports it.
"""

from coolhead.extras import lazy_names

__getattr__, __dir__, __all__ = lazy_names(  # pyright: ignore
    "coolhead.lab", {}, subpackages=("heads", "images", "report")
)
