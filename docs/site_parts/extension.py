"""What the site adds to Sphinx: reference pages, measured tables, a first screen.

Nothing that a page says in numbers is typed: it comes from the package, from a file of
results, or from a run at build time.
"""

from pathlib import Path
from typing import Any

from site_parts import (
    first_screen,
    measured,
    origins,
    plain_text,
    reference,
    sources,
)

# Folder below docs/ of the pages written at build time; not under version control.
GENERATED = "reference"


def setup(app: Any) -> dict[str, Any]:
    """Called by Sphinx."""
    app.add_directive("measured", measured.Measured)
    app.connect("config-inited", _write_pages)
    app.connect("source-read", sources.prepare_page)
    # After numpydoc, which makes reStructuredText of our sections.
    app.connect("autodoc-process-docstring", sources.escape_docstring, priority=900)
    app.connect("autodoc-skip-member", sources.skip_generated)
    app.connect("build-finished", plain_text.write)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


def _write_pages(app: Any, config: Any) -> None:
    docs = Path(app.srcdir)
    reference.write(docs / GENERATED)
    first_screen.write(docs / "_static" / "made")
    origins.write(docs, docs / "_static" / "made")
