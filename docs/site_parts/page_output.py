"""Run the code of the tutorials while the site is built and show what it prints.

Every page runs in a process and an empty folder of its own. Results are kept until the
page's code or the package changes.
"""

import io
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from hashlib import sha256
from pathlib import Path
from typing import Any

# Pages whose code needs nothing that the page does not make.
PAGES = (
    *("index", "start-here", "which-method", "ten-minutes", "file-formats", "statuses"),
    *("class-offsets", "classes-and-weights"),
    *("how-to/tables-and-boosters", "how-to/torch-and-serving", "how-to/command-line"),
    *("how-to/new-domain", "how-to/few-labels", "how-to/monitoring", "how-to/cluster"),
    *("how-to/paper-experiments", "how-to/own-method"),
)
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```\n", re.DOTALL | re.M)
WIDTH = "88"


def write(docs: Path, folder: Path, package: str) -> None:
    """Run every page whose code or package (its digest) is new."""
    folder.mkdir(parents=True, exist_ok=True)
    waiting = []
    for page in PAGES:
        blocks = BLOCK.findall((docs / f"{page}.md").read_text(encoding="utf-8"))
        now = sha256(json.dumps([package, blocks]).encode()).hexdigest()
        file = result_path(folder, page)
        if not file.exists() or json.loads(file.read_text())["of"] != now:
            waiting.append((blocks, file, now))
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda one: _run_in_process(*one), waiting))


def result_path(folder: Path, page: str) -> Path:
    """Where the output of a page is kept."""
    return folder / f"{page.replace('/', '-')}.json"


def insert(text: str, folder: Path, page: str, depth: int) -> str:
    """Add the output of every block below it, pictures for both themes included."""
    if page not in PAGES:
        return text
    found = iter(json.loads(result_path(folder, page).read_text())["outputs"])
    up = "../" * depth

    def with_output(block: re.Match) -> str:
        printed, pictures = next(found)
        parts = [block[0]]
        if printed:
            parts.append(f"```{{code-block}} text\n:class: output\n\n{printed}\n```\n")
        for name in pictures:
            for theme, ending in (("light", ".svg"), ("dark", "-dark.svg")):
                file = f"{up}_static/made/output/{name}{ending}"
                parts.append(
                    f"```{{image}} {file}\n:alt: The figure that this code draws\n"
                    f":class: only-{theme}\n```\n"
                )
        return "\n".join(parts)

    return BLOCK.sub(with_output, text)


def _run_in_process(blocks: list, file: Path, now: str) -> None:
    settings = os.environ | {"COLUMNS": WIDTH, "MPLBACKEND": "Agg", "NO_COLOR": "1"}
    with tempfile.TemporaryDirectory() as empty:
        done = subprocess.run(
            [sys.executable, __file__, str(file.with_suffix(""))],
            input=json.dumps(blocks),
            cwd=empty,
            env=settings,
            capture_output=True,
            text=True,
        )
    if done.returncode:
        raise RuntimeError(f"{file.stem}: {done.stderr}")
    outputs = json.loads(done.stdout.splitlines()[-1])
    file.write_text(json.dumps({"of": now, "outputs": outputs}), encoding="utf-8")


def run_blocks(blocks: list, pictures: Path) -> list[tuple[str, list[str]]]:
    """Return what every block prints, and the names of the figures it draws."""
    scope: dict[str, Any] = {"__name__": "page"}
    sys.modules["page"] = type(sys)("page")
    outputs = []
    for number, (language, code) in enumerate(blocks):
        if language == "console":
            outputs.append(("\n".join(map(_command, code.splitlines())).strip(), []))
            continue
        stream = io.StringIO()
        with redirect_stdout(stream), warnings.catch_warnings():
            warnings.showwarning = lambda said, kind, *_: print(
                f"{kind.__name__}: {said}"
            )
            exec(compile(code, f"block {number}", "exec"), scope)
        drawn = _save_figures(f"{pictures}-{number}")
        outputs.append((stream.getvalue().strip(), drawn))
    return outputs


def _command(line: str) -> str:
    """Run one line of a console block and return what the terminal shows."""
    _, *words = shlex.split(line)
    done = subprocess.run(
        [sys.executable, "-m", "coolhead", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(f"{line}: {done.stdout}")
    return f"$ {line}\n{done.stdout.rstrip()}\n"


def _save_figures(stem: str) -> list[str]:
    """Write open figures as SVG for both themes and close them."""
    if "matplotlib.pyplot" not in sys.modules:
        return []
    import matplotlib.pyplot as plt

    sys.path.insert(0, str(Path(__file__).parents[1]))
    from site_parts.first_screen import in_the_dark

    names = []
    for number in plt.get_fignums():
        drawn = io.StringIO()
        plt.figure(number).savefig(drawn, format="svg", bbox_inches="tight")
        path = Path(f"{stem}-{number}")
        Path(f"{path}.svg").write_text(drawn.getvalue(), encoding="utf-8")
        dark = in_the_dark(drawn.getvalue())
        Path(f"{path}-dark.svg").write_text(dark, encoding="utf-8")
        names.append(path.name)
    plt.close("all")
    return names


if __name__ == "__main__":
    found = run_blocks(json.loads(sys.stdin.read()), Path(sys.argv[1]))
    print("\n" + json.dumps(found))
