"""Pages of the reference, written from the package: names, commands, messages."""

import ast
import inspect
from collections.abc import Iterator
from importlib import import_module
from inspect import getdoc
from pathlib import Path
from types import ModuleType
from typing import Any

import typer

import coolhead
from coolhead.cli.commands import COMMANDS, application
from coolhead.lab import results

# Rooms that are namespaces at the top, and those imported by their own name.
ROOMS = (
    *("calibrators", "baselines", "metrics", "new_domain", "shift", "datasets"),
    *(
        "figures",
        "torch",
        "dask",
        "io",
        "monitor",
        "models",
        "mlflow",
        "lab.heads",
        "lab.images",
        "report",
        "lab.report",
    ),
)


def write(folder: Path) -> None:
    """Write every page whose text changed; Sphinx reads only those again."""
    folder.mkdir(exist_ok=True)
    pages = {"api-coolhead.rst": api_page(coolhead, top_names())}
    for room in ROOMS:
        module = room_module(room)
        names = [n for n in module.__all__ if n not in top_names()]
        pages[f"api-{room}.rst"] = api_page(module, names)
    pages["run-files.rst"] = f"Files of a run\n==============\n\n{getdoc(results)}\n"
    pages["commands.md"] = commands_page()
    pages["messages.md"] = messages_page(Path(coolhead.__file__).parent)
    for name, text in pages.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def top_names() -> list[str]:
    """Names of `coolhead` itself, rooms left out."""
    return [n for n in coolhead.__all__ if not inspect.ismodule(getattr(coolhead, n))]


def room_module(room: str) -> ModuleType:
    """A namespace of the package."""
    return import_module(f"coolhead.{room}")


def api_page(module: ModuleType, names: list[str]) -> str:
    """One namespace: a table of its names, then each of them."""
    title = module.__name__
    lines = [title, "=" * len(title), "", f".. automodule:: {title}", ""]
    lines += [f".. currentmodule:: {title}", "", ".. autosummary::", ""]
    lines += [f"   {name}" for name in names] + [""]
    for name in names:
        lines += [*_entry(name, getattr(module, name)), ""]
    return "\n".join(lines)


def _entry(name: str, found: Any) -> list[str]:
    if inspect.isclass(found):
        return [f".. autoclass:: {name}", "   :members:", "   :show-inheritance:"]
    return [f".. {'autofunction' if callable(found) else 'autodata'}:: {name}"]


def commands_page() -> str:
    """Every command with what its --help prints."""
    group: Any = typer.main.get_command(application())
    parts = ["# Commands", "`coolhead COMMAND --help` prints what stands here."]
    context = group.context_class(group, info_name="coolhead")
    for name in COMMANDS:
        command = group.get_command(context, name)
        own = command.context_class(
            command, info_name=name, parent=context, max_content_width=88
        )
        parts += [f"## coolhead {name}", f"```text\n{command.get_help(own)}\n```"]
    return "\n\n".join(parts) + "\n"


def messages_page(package: Path) -> str:
    """Every text that the package raises or warns with, as its source has it."""
    parts = [
        "# Messages",
        "Every refusal and warning of the package, room by room, with the names of "
        "what is filled in in braces. Search this page for the words you saw.",
    ]
    for room in sorted(
        {path.relative_to(package).parts[0] for path in _files(package)}
    ):
        place = package / room
        files = [place] if place.is_file() else _files(place)
        found = sorted({text for path in files for text in messages(path)})
        if found:
            parts.append(f"## {room.removesuffix('.py')}")
            parts.append("\n".join(f"- {_quoted(text)}" for text in found))
    return "\n\n".join(parts) + "\n"


def _files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py"))


def _quoted(text: str) -> str:
    fence = "``" if "`" in text else "`"
    gap = " " if "`" in text else ""
    return f"{fence}{gap}{' '.join(text.split())}{gap}{fence}"


def messages(path: Path) -> Iterator[str]:
    """Texts of the exceptions raised and the warnings given in one file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        call = node.exc if isinstance(node, ast.Raise) else node
        if not isinstance(call, ast.Call) or not call.args:
            continue
        warns = ast.unparse(call.func).endswith("warn")
        if isinstance(node, ast.Raise) or warns:
            text = _template(call.args[0])
            if text:
                yield text


def _template(node: ast.expr) -> str:
    """A literal text with the source of what is filled in, in braces."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            "{" + ast.unparse(part.value) + "}"
            if isinstance(part, ast.FormattedValue)
            else _template(part)
            for part in node.values
        )
    return ""
