"""transformers: models, text-classification pipelines and the `Trainer`."""

from typing import Any

from coolhead.models import torch
from coolhead.models.outputs import Reading, read_output


def logits(model: Any, X: Any) -> Reading:
    """Logits before the softmax that pipelines put behind them."""
    if hasattr(model, "tokenizer") and hasattr(model, "postprocess"):
        return _of_pipeline(model, X)
    if hasattr(model, "compute_loss") and hasattr(model, "predict"):
        return read_output(model.predict(X), "logits", None, "Trainer.predict(X)")
    return torch.logits(model, X)


def _of_pipeline(pipeline: Any, texts: Any) -> Reading:
    texts = [texts] if isinstance(texts, str) else list(texts)
    named = pipeline.model.config.id2label
    found = pipeline(texts, top_k=None, function_to_apply="none")
    classes = [named[number] for number in sorted(named)]
    return read_output(found, "logits", classes, "the output of the pipeline")
