"""Export a saved calibrator for other runtimes."""

from pathlib import Path
from typing import Annotated

import typer

from coolhead.cli.apply import CalibratorArgument, load_fitted
from coolhead.cli.terminal import JsonOption


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
    from coolhead.files import check_input, check_output

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
