"""llms.txt, and all pages in one file, for readers that are programs."""

import re
from pathlib import Path
from typing import Any

from site_parts.tables import as_markdown, cut, find_table, names

HEAD = """# coolhead

> Honest confidence for classifiers in domains they have never seen: a temperature T(x)
> that divides the logits, learned from several other labelled domains.

All pages in one file: llms-full.txt
"""
DIRECTIVE = re.compile(
    r"^```{(include|measured|literalinclude)} (\S+)\n(.*?)^```", re.DOTALL | re.M
)
LEFT_OUT = ("gallery/", "sg_execution_times")


def write(app: Any, error: Exception | None) -> None:
    """After a build of HTML without an error."""
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
    for script in sorted(Path(app.srcdir).glob("_examples/plot_*.py")):
        texts.append(f"<!-- examples/{script.name} -->\n\n{script.read_text()}")
    (out / "llms.txt").write_text("\n".join(listed) + "\n", encoding="utf-8")
    (out / "llms-full.txt").write_text("\n\n".join(texts), encoding="utf-8")


def _text(env: Any, page: str) -> str:
    """The Markdown of a page, or what Sphinx made of reStructuredText."""
    path = Path(env.doc2path(page))
    if path.suffix == ".rst":
        return env.get_doctree(page).astext()
    return expand(path).strip()


def expand(path: Path) -> str:
    """The Markdown of a page, with what its directives show in their place."""

    def shown(found: re.Match) -> str:
        name, file, options = found.groups()
        said = dict(re.findall(r"^:([\w-]+): (.*)$", options, re.M))
        text = (path.parent / file).read_text(encoding="utf-8").strip()
        if name == "measured":
            table = find_table(text, names(said["under"], "/"))
            wanted = (names(said.get(key, "")) for key in ("rows", "columns"))
            return as_markdown(cut(table, *wanted))
        if "start-after" in said:
            text = text.partition(said["start-after"].strip('"'))[2]
            text = text.partition(said["end-before"].strip('"'))[0].strip()
        return f"```\n{text}\n```" if name == "literalinclude" else text

    text = path.read_text(encoding="utf-8")
    return DIRECTIVE.sub(shown, text)
