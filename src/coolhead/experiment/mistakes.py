"""Turn validation errors into sentences that name the key that was meant."""

from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from coolhead.suggest import suggest


def explain_mistakes(error: ValidationError, model: type[BaseModel], place: str) -> str:
    """All mistakes of a file, one line each, with the place in the file."""
    lines = [_sentence(mistake, model) for mistake in error.errors()]
    return f"{place}: " + "; ".join(lines)


def _sentence(mistake: Any, model: type[BaseModel]) -> str:
    parts = [str(part) for part in mistake["loc"]]
    where = ".".join(parts)
    if mistake["type"] == "extra_forbidden":
        allowed = sorted(_keys_beside(model, parts))
        return f"unknown key {where!r}{suggest(parts[-1], allowed)}"
    if mistake["type"] == "missing":
        return f"missing key {where!r}"
    message = mistake["msg"].removeprefix("Value error, ")
    return f"{where}: {message}" if where else message


def _keys_beside(model: type[BaseModel], parts: list[str]) -> set[str]:
    """Every key allowed in the table that holds the last part of `parts`."""
    tables = [model]
    for part in parts[:-1]:
        fields = [table.model_fields.get(part) for table in tables]
        inner = [t for f in fields if f is not None for t in models_in(f.annotation)]
        # A part that is no field chooses a member of a union or names a free table.
        tables = inner or tables
    return {key for table in tables for key in table.model_fields}


def models_in(annotation: Any) -> list[type[BaseModel]]:
    """The models that a key's type is made of."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for arg in get_args(annotation) for found in models_in(arg)]
