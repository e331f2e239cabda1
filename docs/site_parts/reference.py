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

# Subpackages with public names of their own.
MODULES = (
    *("calibrators", "baselines", "metrics", "new_domain", "shift", "datasets"),
    *("figures", "torch", "dask", "io", "monitor", "models", "mlflow", "report"),
    *("lab.heads", "lab.images", "lab.report"),
)

# Methods that a reader looks for first.
FIRST = ("fit", "predict_proba", "predict", "confidence", "temperature", "details")
# Methods that only authors of calibrators need.
INTERNAL = {"fit_data", "fit_part", "note_masked", "note_shapes", "uses_features"}


def write(folder: Path) -> None:
    """Write every page whose text changed; Sphinx reads only those again."""
    folder.mkdir(exist_ok=True)
    pages = api_pages(coolhead, top_names())
    for name in MODULES:
        module = public_module(name)
        pages |= api_pages(module, [n for n in module.__all__ if n not in top_names()])
    pages["run-files.rst"] = f"Files of a run\n==============\n\n{getdoc(results)}\n"
    pages["commands.md"] = commands_page()
    pages["messages.md"] = messages_page(Path(coolhead.__file__).parent)
    for path in folder.iterdir():
        if path.name not in pages:
            path.unlink()
    for name, text in pages.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def top_names() -> list[str]:
    """Names of `coolhead` itself, without subpackages."""
    return [n for n in coolhead.__all__ if not inspect.ismodule(getattr(coolhead, n))]


def public_module(name: str) -> ModuleType:
    """A public subpackage or module."""
    return import_module(f"coolhead.{name}")


def api_pages(module: ModuleType, names: list[str]) -> dict[str, str]:
    """Return the page of a module and one page for each class with methods."""
    title = module.__name__
    classes = {name: methods(getattr(module, name)) for name in names}
    classes = {name: found for name, found in classes.items() if found}
    lines = [title, "=" * len(title), "", f".. automodule:: {title}", ""]
    lines += [f".. currentmodule:: {title}", "", ".. autosummary::", ""]
    lines += [f"   {name}" for name in names] + [""]
    if classes:
        lines += [".. toctree::", "   :hidden:", ""]
        lines += [f"   {title}.{name}" for name in classes] + [""]
    for name in names:
        if name not in classes:
            lines += [*_entry(name, getattr(module, name)), ""]
    pages = {f"api-{title.removeprefix('coolhead.')}.rst": "\n".join(lines)}
    for name, found in classes.items():
        pages[f"{title}.{name}.rst"] = class_page(module, name, found)
    return pages


def methods(found: Any) -> list[str]:
    """Public methods and properties of a class, inherited ones of the package too."""
    if not inspect.isclass(found):
        return []
    names = {}
    for base in found.__mro__:
        if base.__module__.startswith("coolhead"):
            for name, one in vars(base).items():
                known = isinstance(one, property | classmethod | staticmethod)
                if known or inspect.isfunction(one) or hasattr(one, "func"):
                    names.setdefault(name, getdoc(one))
    order = [name for name in FIRST if name in names] + sorted(names)
    kept = [name for name in dict.fromkeys(order) if name not in INTERNAL]
    return [name for name in kept if names[name] and not name.startswith("_")]


def class_page(module: ModuleType, name: str, found: list[str]) -> str:
    """One class: its docstring, a table of its methods, then each of them."""
    lines = [name, "=" * len(name), "", f".. currentmodule:: {module.__name__}", ""]
    lines += [f".. autoclass:: {name}", "   :show-inheritance:", ""]
    lines += [".. rubric:: Methods", "", ".. autosummary::", ""]
    lines += [f"   {name}.{method}" for method in found] + [""]
    for method in found:
        one = inspect.getattr_static(getattr(module, name), method)
        plain = inspect.isfunction(one) or isinstance(one, classmethod | staticmethod)
        lines.append(f".. auto{'method' if plain else 'property'}:: {name}.{method}")
    return "\n".join(lines) + "\n"


def _entry(name: str, found: Any) -> list[str]:
    if inspect.isclass(found):
        return [f".. autoclass:: {name}", "   :members:", "   :show-inheritance:"]
    return [f".. {'autofunction' if callable(found) else 'autodata'}:: {name}"]


def commands_page() -> str:
    """Every command with what its --help prints."""
    group: Any = typer.main.get_command(application())
    parts = ["# Commands", "The text that `coolhead COMMAND --help` prints."]
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
        "Every error message and warning of the package, by subpackage. Expressions "
        "in braces are filled in. Search this page for the words of a message.",
    ]
    for name in sorted(
        {path.relative_to(package).parts[0] for path in _files(package)}
    ):
        part = package / name
        files = [part] if part.is_file() else _files(part)
        found = sorted({text for path in files for text in messages(path)})
        if found:
            parts.append(f"## {name.removesuffix('.py')}")
            parts.append("\n".join(f"- {_quoted(text)}" for text in found))
    return "\n\n".join(parts) + "\n"


def _files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py"))


def _quoted(text: str) -> str:
    fence = "``" if "`" in text else "`"
    gap = " " if "`" in text else ""
    return f"{fence}{gap}{' '.join(text.split())}{gap}{fence}"


def messages(path: Path) -> Iterator[str]:
    """Yield the texts of exceptions and warnings of one file."""
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
