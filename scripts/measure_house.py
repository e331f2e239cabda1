"""The size of the house: code lines, files per room, who imports whom.

    python scripts/measure_house.py [FOLDER]

Code lines are those that hold a token which is no comment and no docstring.
"""

import ast
import io
import sys
import tokenize
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parent.parent / "src" / "coolhead"
QUIET = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def code_lines(path: Path) -> int:
    """Lines of a file that hold code."""
    text = path.read_text(encoding="utf-8")
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    lines = {
        line
        for token in tokens
        if token.type not in QUIET
        for line in range(token.start[0], token.end[0] + 1)
    }
    return len(lines - set(_docstring_lines(ast.parse(text))))


def _docstring_lines(tree: ast.Module) -> list[int]:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    found = []
    for node in ast.walk(tree):
        if isinstance(node, kinds) and ast.get_docstring(node, clean=False) is not None:
            first = node.body[0]
            found += range(first.lineno, (first.end_lineno or first.lineno) + 1)
    return found


def edges(root: Path) -> set[tuple[str, str]]:
    """(room, room it imports) for every room of the package."""
    found = set()
    for path in root.rglob("*.py"):
        room = path.relative_to(root).parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module, *(f"{node.module}.{a.name}" for a in node.names)]
                rooms = {n.split(".")[1] for n in names if n.startswith("coolhead.")}
                found |= {(room, other) for other in rooms if other != room}
    known = {pair[0] for pair in found} | {path.stem for path in root.glob("*.py")}
    return {pair for pair in found if pair[0] != "__init__" and pair[1] in known}


def report(root: Path) -> None:
    """Print the numbers."""
    files = sorted(root.rglob("*.py"))
    lines, per_room = Counter(), Counter()
    for path in files:
        room = path.relative_to(root).parts[0].removesuffix(".py")
        lines[room] += code_lines(path)
        per_room[room] += 1
    print(f"{len(files)} files, {sum(lines.values())} code lines, ", end="")
    print(f"{len(edges(root))} edges between {len(per_room) - 1} rooms")
    for room, count in lines.most_common():
        print(f"{room:<14}{count:>6} lines{per_room[room]:>5} files")


if __name__ == "__main__":
    report(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT)
