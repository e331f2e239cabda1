"""Logits and leaves of the models of each library."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from coolhead.models.outputs import (
    Reading,
    from_logarithms,
    from_probabilities,
    read_output,
    scores_in,
    sigmoids,
)
from coolhead.numerics.checks import as_logits, real_array


def scikit_learn_logits(model: Any, X: Any) -> Reading:
    """Return scores, else log-probabilities of the model or of its probabilities."""
    if hasattr(model, "decision_function"):
        scores = as_logits(model.decision_function(X), "decision_function(X)")
        return Reading(one_per_class(scores, model))
    if hasattr(model, "predict_log_proba"):
        with np.errstate(divide="ignore"):
            return from_logarithms(model.predict_log_proba(X))
    return from_probabilities(model.predict_proba(X), "predict_proba(X)")


def one_per_class(scores: np.ndarray, model: Any) -> np.ndarray:
    """Refuse scores of pairs of classes."""
    wanted = len(getattr(model, "classes_", scores[0]))
    # Three classes have three pairs, too.
    pairs = wanted > 2 and getattr(model, "decision_function_shape", None) == "ovo"
    if pairs:
        raise ValueError(
            f"decision_function_shape of {type(model).__name__} is 'ovo', which gives "
            "scores of pairs of classes; wanted one score per class ('ovr')"
        )
    if scores.shape[1] != wanted:
        raise ValueError(
            f"decision_function(X) has {scores.shape[1]} columns for {wanted} classes; "
            "wanted one score per class (e.g. decision_function_shape='ovr')"
        )
    return scores


def scikit_learn_leaves(model: Any, X: Any) -> np.ndarray:
    """Return one leaf per tree, of trees, forests and gradient boosting."""
    found = np.asarray(model.apply(X))
    return found.reshape(len(found), -1)


def _check_objective(library: str, found: str, wanted: tuple[str, ...]) -> None:
    if not found.startswith(wanted):
        raise ValueError(
            f"the objective of this {library} model is {found}; wanted one of "
            f"classification: {', '.join(wanted)}"
        )


def lightgbm_logits(model: Any, X: Any) -> Reading:
    """Return raw scores, in the unit of the objective's own sigmoid or softmax."""
    booster = getattr(model, "booster_", model)
    text = booster.model_to_string(num_iteration=1)
    if re.search(r"^average_output$", text, re.MULTILINE):
        # A random forest averages probabilities; it has no scores before them.
        return from_probabilities(booster.predict(X), "predict(X)")
    line = re.search(r"^objective=(\w+)(.*)$", text, re.MULTILINE)
    objective, settings = line.groups() if line else ("custom", "")
    slope = re.search(r"sigmoid:(\S+)", settings)
    scores = np.asarray(model.predict(X, raw_score=True))
    scores = scores * float(slope[1]) if slope else scores
    if objective == "multiclassova":
        return sigmoids(scores)
    known = ("binary", "multiclass", "cross_entropy", "custom")
    _check_objective("LightGBM", objective, known)
    return Reading(as_logits(scores, "predict(X, raw_score=True)"))


def lightgbm_leaves(model: Any, X: Any) -> np.ndarray:
    """Return one leaf per tree; several classes have one tree each per round."""
    return np.asarray(model.predict(X, pred_leaf=True))


def xgboost_logits(model: Any, X: Any) -> Reading:
    """Return margins, before the sigmoid or softmax of the objective."""
    booster = getattr(model, "get_booster", lambda: model)()
    config = json.loads(booster.save_config())
    known = ("binary:logistic", "binary:logitraw", "reg:logistic", "multi:")
    _check_objective("XGBoost", config["learner"]["objective"]["name"], known)
    rows = _matrix(X) if booster is model else X
    found = model.predict(rows, output_margin=True)
    return Reading(as_logits(found, "predict(X, output_margin=True)"))


def xgboost_leaves(model: Any, X: Any) -> np.ndarray:
    """Return one leaf per tree; several classes have one tree each per round."""
    if hasattr(model, "get_booster"):
        found = np.asarray(model.apply(X))
    else:
        found = np.asarray(model.predict(_matrix(X), pred_leaf=True))
    return found.reshape(len(found), -1)


def _matrix(X: Any) -> Any:
    import xgboost

    if isinstance(X, xgboost.DMatrix):
        return X
    return xgboost.DMatrix(X, enable_categorical=True)


def catboost_logits(model: Any, X: Any) -> Reading:
    """Return raw formula values, before the sigmoid or softmax of the loss function."""
    loss = str(model.get_all_params()["loss_function"]).partition(":")[0]
    found = model.predict(X, prediction_type="RawFormulaVal")
    if loss == "MultiClassOneVsAll":
        return sigmoids(found)
    _check_objective("CatBoost", loss, ("Logloss", "CrossEntropy", "MultiClass"))
    return Reading(as_logits(found, "predict(X, prediction_type='RawFormulaVal')"))


def catboost_leaves(model: Any, X: Any) -> np.ndarray:
    """Return one leaf per tree."""
    return np.asarray(model.calc_leaf_indexes(X))


@contextmanager
def frozen(module: Any) -> Iterator[None]:
    """Put every layer in evaluation mode, record no gradients; undo both after."""
    import torch

    modes = [(layer, layer.training) for layer in module.modules()]
    module.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        for layer, training in modes:
            layer.training = training


def torch_logits(model: Any, X: Any) -> Reading:
    """Return the logits of all batches, computed on the device of the network."""
    with frozen(model):
        parts = [
            real_array(scores_in(call(model, batch)), "the output of the network")
            for batch in batches(X)
        ]
    if not parts:
        raise ValueError("X has no batches; wanted at least one")
    return read_output(np.concatenate(parts), None, None, "the output of the network")


def batches(X: Any) -> Iterable[Any]:
    """Return a data loader unchanged; everything else is one batch."""
    single = hasattr(X, "shape") or isinstance(X, Mapping | list | tuple)
    return [X] if single else X


def call(model: Any, batch: Any) -> Any:
    """Call the network on a batch: a tensor, a dictionary, or (inputs, labels)."""
    if isinstance(batch, list | tuple):
        batch = batch[0]
    if isinstance(batch, Mapping):
        return model(**{name: on_device(model, part) for name, part in batch.items()})
    return model(on_device(model, batch))


def on_device(model: Any, values: Any) -> Any:
    """Return values as a tensor on the device of the network."""
    import torch

    tensor = torch.as_tensor(values)
    first = next(iter(model.parameters()), tensor)
    # NumPy's numbers are doubles, which no network of single precision takes.
    single = tensor.dtype == torch.float64 and not isinstance(values, torch.Tensor)
    return tensor.to(first.device, first.dtype if single else tensor.dtype)


def transformers_logits(model: Any, X: Any) -> Reading:
    """Return logits before the softmax of pipelines."""
    if hasattr(model, "tokenizer") and hasattr(model, "postprocess"):
        return _of_pipeline(model, X)
    if hasattr(model, "compute_loss") and hasattr(model, "predict"):
        return read_output(model.predict(X), "logits", None, "Trainer.predict(X)")
    return torch_logits(model, X)


def _of_pipeline(pipeline: Any, texts: Any) -> Reading:
    texts = [texts] if isinstance(texts, str) else list(texts)
    named = pipeline.model.config.id2label
    found = pipeline(texts, top_k=None, function_to_apply="none")
    classes = [named[number] for number in sorted(named)]
    return read_output(found, "logits", classes, "the output of the pipeline")


def keras_logits(model: Any, X: Any) -> Reading:
    """Return the output of the network; its logarithm if it ends in a softmax."""
    activation = getattr(model.layers[-1], "activation", None)
    name = getattr(activation, "__name__", type(model.layers[-1]).__name__).lower()
    gives = "probabilities" if name in ("softmax", "sigmoid") else "logits"
    return read_output(model.predict(X, verbose=0), gives, None, "predict(X)")
