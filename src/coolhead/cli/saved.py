"""`coolhead inspect` and `coolhead export`: what is inside a saved calibrator."""

from pathlib import Path
from typing import Annotated, Any

import typer

from coolhead.cli.apply import CalibratorArgument, load_fitted
from coolhead.cli.terminal import JsonOption

SINGLE_PARTS = ("selection_", "first_", "base_", "base")


def inspect(calibrator: CalibratorArgument, as_json: JsonOption = False) -> None:
    """Show temperatures, clusters, statuses and what a calibrator was fitted on."""
    from coolhead.io.files import check_input

    check_input(calibrator)
    from coolhead.cli.terminal import plain_name, print_json, print_pairs
    from coolhead.io.calibrators import read_header

    fitted = load_fitted(calibrator)
    header = read_header(calibrator)
    content = {"file": str(calibrator), "bytes": calibrator.stat().st_size}
    content |= {key: header.get(key) for key in ("format_version", "coolhead_version")}
    content |= {"metadata": header["metadata"], "calibrator": describe(fitted)}
    if as_json:
        print_json(content)
        return
    metadata = content["metadata"]
    metadata.pop("expected", None)  # counts for the drift monitor, in --json only
    print_pairs(
        {
            "file": f"{calibrator} ({content['bytes'] / 1000:.0f} kB, format "
            f"{content['format_version']}, coolhead {content['coolhead_version']})",
            "fitted on": metadata.pop("file", "unknown"),
            **{plain_name(key): value for key, value in metadata.items() if value},
            "classes": content["calibrator"]["n_classes"],
        }
    )
    _print_description(content["calibrator"])


def describe(fitted: Any) -> dict[str, Any]:
    """Class, parameters, temperatures, statuses and clusters of a calibrator."""
    found: dict[str, Any] = {
        "class": type(fitted).__name__,
        "parameters": {
            name: value
            for name, value in fitted.get_params(deep=False).items()
            if isinstance(value, str | int | float | None)
        },
        "n_classes": fitted.n_classes_,
        "n_features": getattr(fitted, "n_features_", None),
    }
    for name in ("temperature_", "status_", "n_fallbacks_"):
        if hasattr(fitted, name):
            found[name.rstrip("_")] = getattr(fitted, name)
    if hasattr(fitted, "cluster_temperatures_"):
        found["clusters"] = {
            "temperature": fitted.cluster_temperatures_,
            "radius": fitted.clusters_.radii,
            "status": fitted.status_,
        }
    if hasattr(fitted, "domain_temperatures_"):
        pairs = zip(fitted.domains_, fitted.domain_temperatures_, strict=True)
        found["domain_temperatures"] = {str(name): float(t) for name, t in pairs}
    if hasattr(fitted, "names_"):
        found["weights"] = dict(zip(fitted.names_, fitted.weights_, strict=True))
    parts = [*getattr(fitted, "members_", ()), *getattr(fitted, "candidates_", ())]
    parts += [getattr(fitted, name, None) for name in SINGLE_PARTS]
    found["members"] = [describe(p) for p in parts if hasattr(p, "n_classes_")]
    return found


def _print_description(found: dict[str, Any], indent: str = "") -> None:
    from coolhead.cli.terminal import plain_name, print_table, print_text, shown

    print(f"\n{indent}{found['class']}")
    names = ["parameters", "temperature", "n_features", "n_fallbacks"]
    names += ["domain_temperatures", "weights"]
    names += ["status"] if "clusters" not in found else []
    for name in names:
        text = "" if found.get(name) is None else shown(found[name])
        if text:
            line = f"{indent}  {plain_name(name)}: {text}"
            print_text(line, indent=len(indent) + 4)
    if "clusters" in found:
        columns = zip(*found["clusters"].values(), strict=True)
        rows = [
            (str(number), f"{t:.4g}", f"{radius:.4g}", str(status))
            for number, (t, radius, status) in enumerate(columns)
        ]
        title = f"{indent}  clusters:"
        print_table(("cluster", "temperature", "radius", "status"), rows, title)
    for member in found["members"]:
        _print_description(member, indent + "  ")


def export(
    calibrator: CalibratorArgument,
    onnx: Annotated[Path, typer.Option(help="ONNX file to write.")],
    details: Annotated[
        bool,
        typer.Option(help="Give temperature and coverage too, where it has them."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Write a calibrator as an ONNX graph, compared with NumPy first.

    Its inputs are logits and, where the method uses them, features; the batch size is
    free.
    """
    from coolhead.io.files import check_input, check_output

    check_output(onnx, inputs=[check_input(calibrator)])
    from coolhead.cli.terminal import plain_warnings, print_json

    fitted = load_fitted(calibrator)
    try:
        from coolhead.torch import CalibratedSoftmax, export_onnx
    except ModuleNotFoundError as error:
        raise ImportError(
            f"export needs {error.name}: pip install 'coolhead[onnx]'"
        ) from error
    with plain_warnings():
        try:
            module = CalibratedSoftmax(fitted)
            outputs = module.outputs if details else module.outputs[:1]
            export_onnx(module, onnx, outputs=outputs)
        except (RuntimeError, TypeError) as error:
            reason = " ".join(str(error).split())
            raise ValueError(f"cannot export {calibrator}: {reason}") from error
    inputs = ["logits"] + ["features"] * (module.n_features is not None)
    size = onnx.stat().st_size
    if as_json:
        print_json(
            {"out": str(onnx), "bytes": size, "inputs": inputs, "outputs": outputs}
        )
        return
    print(f"{onnx}: {', '.join(inputs)} -> {', '.join(outputs)} ({size / 1000:.0f} kB)")
