"""Tables of Markdown files, found by the headings above them."""

Row = list[str]


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
