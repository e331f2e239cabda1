"""Files: predictions, archives, saved calibrators; written whole or not at all."""

from coolhead.extras import lazy_names

__getattr__, __dir__, __all__ = lazy_names(  # pyright: ignore
    "coolhead.io",
    {
        "archive": ["DomainArchive"],
        "calibrators": ["load_calibrator", "save_calibrator"],
        "reading": ["Block", "load_archive", "open_predictions", "stream_blocks"],
    },
)
