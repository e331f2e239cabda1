"""What the site adds to Sphinx: reference pages, measured tables, output of tutorials.

Numbers on pages are not typed: they come from the package, from a file of results, or
from a run at build time.
"""

from pathlib import Path
from typing import Any

import coolhead
from site_parts import (
    first_screen,
    measured,
    origins,
    page_output,
    plain_text,
    reference,
    sources,
)

# Folder below docs/ of the pages written at build time; not under version control.
GENERATED = "reference"
MADE = "_static/made"


def setup(app: Any) -> dict[str, Any]:
    """Called by Sphinx."""
    app.add_directive("measured", measured.Measured)
    app.connect("config-inited", _write_pages)
    app.connect("source-read", sources.prepare_page)
    app.connect("source-read", _insert_output)
    # After numpydoc, which makes reStructuredText of our sections.
    app.connect("autodoc-process-docstring", sources.escape_docstring, priority=900)
    app.connect("autodoc-skip-member", sources.skip_generated)
    app.connect("build-finished", plain_text.write)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


def _write_pages(app: Any, config: Any) -> None:
    docs = Path(app.srcdir)
    reference.write(docs / GENERATED)
    first_screen.write(docs / MADE)
    origins.write(docs, docs / MADE)
    package = first_screen.digest(Path(coolhead.__file__).parent)
    page_output.write(docs, docs / MADE / "output", package)


def _insert_output(app: Any, page: str, source: list[str]) -> None:
    folder = Path(app.srcdir) / MADE / "output"
    if page in page_output.PAGES:
        app.env.note_dependency(str(page_output.result_path(folder, page)))
    source[0] = page_output.insert(source[0], folder, page, page.count("/"))
