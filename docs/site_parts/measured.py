"""The directive `measured`: rows of a table that a benchmark wrote."""

from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

from site_parts.tables import as_markdown, cut, find_table, names


class Measured(SphinxDirective):
    """A table of a Markdown file, found by its headings, cut to rows and columns.

    ``` {measured} ../experiments/RESULTS.md
    :under: Sentiment in four kinds of text / Summary
    :rows: Uncalibrated, Set-level
    :columns: method, ECE, IR
    ```
    """

    required_arguments = 1
    option_spec: ClassVar[dict[str, Any]] = {
        "under": directives.unchanged_required,
        "rows": directives.unchanged,
        "columns": directives.unchanged,
    }

    def run(self) -> list[nodes.Node]:
        """The table as nodes of the page."""
        _, name = self.env.relfn2path(self.arguments[0])
        self.env.note_dependency(name)
        text = Path(name).read_text(encoding="utf-8")
        table = find_table(text, names(self.options["under"], "/"))
        wanted = (names(self.options.get(key, "")) for key in ("rows", "columns"))
        return self.parse_text_to_nodes(as_markdown(cut(table, *wanted)))
