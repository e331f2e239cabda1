"""llms.txt, and all pages in one file, for readers that are programs."""

import re
from pathlib import Path
from typing import Any

from site_parts.tables import as_markdown, cut, find_table, names

HEAD = """# coolhead

> Confidence calibration for classifiers in domains they were not trained on: a
> temperature T(x) that divides the logits, fitted on several other labelled domains.

All pages in one file: llms-full.txt
"""
DIRECTIVE = re.compile(
    r"^```{(include|measured|literalinclude)} (\S+)\n(.*?)^```", re.DOTALL | re.M
)
LEFT_OUT = ("gallery/", "sg_execution_times")


def write(app: Any, error: Exception | None) -> None:
    """Write both files after a successful build of HTML."""
    if error is not None or app.builder.format != "html":
        return
    from sphinx.util.osutil import relative_uri

    env, out = app.env, Path(app.outdir)
    listed, texts = [HEAD], []
    for page in sorted(env.found_docs, key=lambda name: (name != "index", name)):
        if page.startswith(LEFT_OUT):
            continue
        title = env.titles[page].astext()
        address = relative_uri("", app.builder.get_target_uri(page))
        listed.append(f"- [{title}]({address})")
        texts.append(f"<!-- {address} -->\n\n{_text(env, page)}\n")
    for script in sorted(Path(app.srcdir).glob("_examples/*/plot_*.py")):
        texts.append(f"<!-- examples/{script.name} -->\n\n{script.read_text()}")
    (out / "llms.txt").write_text("\n".join(listed) + "\n", encoding="utf-8")
    (out / "llms-full.txt").write_text("\n\n".join(texts), encoding="utf-8")


def _text(env: Any, page: str) -> str:
    """Return the Markdown of a page, or the text of a reStructuredText one."""
    path = Path(env.doc2path(page))
    if path.suffix == ".rst":
        return env.get_doctree(page).astext()
    return expand(path).strip()


def expand(path: Path) -> str:
    """Return the Markdown of a page, with its directives replaced by their text."""

    def shown(found: re.Match) -> str:
        name, file, options = found.groups()
        given = dict(re.findall(r"^:([\w-]+): (.*)$", options, re.M))
        text = (path.parent / file).read_text(encoding="utf-8").strip()
        if name == "measured":
            table = find_table(text, names(given["under"], "/"))
            wanted = (names(given.get(key, "")) for key in ("rows", "columns"))
            return as_markdown(cut(table, *wanted))
        if "start-after" in given:
            text = text.partition(given["start-after"].strip('"'))[2]
            text = text.partition(given["end-before"].strip('"'))[0].strip()
        return f"```\n{text}\n```" if name == "literalinclude" else text

    text = path.read_text(encoding="utf-8")
    return DIRECTIVE.sub(shown, text)
