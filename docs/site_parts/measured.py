"""The directive `measured`: rows of a table that a benchmark wrote."""

from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

Row = list[str]


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


def names(text: str, separator: str = ";") -> list[str]:
    """What an option lists."""
    return [name.strip() for name in text.split(separator) if name.strip()]


def find_table(text: str, headings: list[str]) -> list[Row]:
    """Cells of the first table below these headings, each inside the one before."""
    lines = iter(text.splitlines())
    for heading in headings:
        for line in lines:
            if line.lstrip("#").strip() == heading and line.startswith("#"):
                break
        else:
            raise ValueError(f"no heading {heading!r}")
    rows: list[Row] = []
    for line in lines:
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip("|").split("|")])
        elif rows:
            break
        elif line.startswith("#"):
            raise ValueError(f"no table right below {headings[-1]!r}")
    del rows[1]
    return rows


def cut(table: list[Row], rows: list[str], columns: list[str]) -> list[Row]:
    """The rows and columns named, in that order; all where none is named."""
    head, *body = table
    numbers = [head.index(name) for name in columns] or range(len(head))
    plain = {row[0].strip("*"): row for row in body}
    chosen = [plain[name] for name in rows] or body
    return [[row[number] for number in numbers] for row in [head, *chosen]]


def as_markdown(table: list[Row]) -> str:
    """The table as Markdown, numbers to the right."""
    head, *body = table
    rule = ["---"] + ["---:"] * (len(head) - 1)
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, rule, *body])
