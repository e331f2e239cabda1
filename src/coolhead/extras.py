"""Packages that only some of coolhead needs, and the extra that brings each."""

from collections.abc import Iterator
from contextlib import contextmanager

EXTRAS = {
    "torch": "torch",
    "timm": "vision",
    "torchvision": "vision",
    "onnx": "onnx",
    "onnxscript": "onnx",
    "onnxruntime": "onnx",
    "dask": "dask",
    "distributed": "dask",
    "lightgbm": "models",
    "xgboost": "models",
    "catboost": "models",
    "transformers": "models",
    "mlflow": "mlflow",
}


@contextmanager
def needs(what: str) -> Iterator[None]:
    """Around an import or what imports: a missing package is told with its extra.

    what : what needs it, the beginning of the sentence.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS or "pip install" in str(error):
            raise
        raise ModuleNotFoundError(
            f"{what} needs {package}: pip install 'coolhead[{EXTRAS[package]}]'",
            name=error.name,
        ) from error
