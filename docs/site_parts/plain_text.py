"""llms.txt, and all pages in one file, for readers that are programs."""

from pathlib import Path
from typing import Any

from sphinx.util.osutil import relative_uri

HEAD = """# coolhead

> Honest confidence for classifiers in domains they have never seen: a temperature T(x)
> that divides the logits, learned from several other labelled domains.

All pages in one file: llms-full.txt
"""
LEFT_OUT = ("gallery/", "sg_execution_times")


def write(app: Any, error: Exception | None) -> None:
    """After a build of HTML without an error."""
    if error is not None or app.builder.format != "html":
        return
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
    """The Markdown of a page, or what Sphinx made of directives that stand for it."""
    path = Path(env.doc2path(page))
    source = path.read_text(encoding="utf-8").strip()
    stands_for_more = path.suffix == ".rst" or "{include}" in source
    return env.get_doctree(page).astext() if stands_for_more else source
