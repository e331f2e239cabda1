"""Cases of the page of statuses: calls that users tried.

Each function returns the error message or warning, "" if there is none.
"""

import sys
import warnings
from contextlib import redirect_stderr, suppress
from io import StringIO
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
import torch
from sklearn.ensemble import HistGradientBoostingClassifier

import coolhead as ch
from command_line import simulate_predictions
from coolhead.cli import main
from simulate import shifted_domains

GIVEN = simulate_predictions(n_rows=90, n_classes=3)
LOGITS, LABELS, FEATURES, DOMAINS = (
    GIVEN[name] for name in ("logits", "labels", "features", "domains")
)
NAMES = np.array(["no", "so", "yes"])[LABELS]
BOOSTER = HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=5)


def said(work, *arguments):
    """Return the error message of a call, or nothing."""
    try:
        work(*arguments)
    except Exception as error:
        return str(error)
    return ""


def command(*words):
    """What a command writes to standard error."""
    with (
        patch.object(sys, "argv", ["coolhead", *words]),
        patch.object(sys, "path", list(sys.path)),
        redirect_stderr(StringIO()) as heard,
        suppress(SystemExit),
    ):
        main()
    return heard.getvalue().removeprefix("coolhead: ").rstrip("\n")


def own_method():
    code = "from coolhead import TemperatureScaling as Mine\nnumber = 4\n"
    Path("mine.py").write_text(code)
    np.savez("p.npz", **GIVEN)
    ask = ("compare", "p.npz", "--methods")
    assert command(*ask, "python:mine:Mine") == ""
    assert "4 cannot be called; wanted a class" in command(*ask, "python:mine:number")
    found = command(*ask, "python:mine:Mien")
    del sys.modules["mine"]
    return found


def table_with_gaps():
    X = pd.DataFrame(FEATURES).set_axis(list("abcdef"), axis=1)
    X.loc[3, "a"], X["kind"] = np.nan, pd.Categorical(NAMES)
    model = ch.CalibratedClassifier(BOOSTER)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*better off uncalibrated")
        return said(lambda: model.fit(X, LABELS, sample_domain=DOMAINS))


def tensors():
    odd = torch.tensor(LOGITS, requires_grad=True).to(torch.bfloat16)
    return said(ch.TemperatureScaling().fit, odd, LABELS)


def named_labels():
    assert said(ch.TemperatureScaling().fit, LOGITS, NAMES) == ""
    return said(ch.TemperatureScaling().fit, LOGITS, np.where(LABELS, "yes", "no"))


def kept_id():
    frame = pd.DataFrame(LOGITS).add_prefix("logit_")
    frame = frame.assign(label=NAMES, domain=DOMAINS, id="r7", note="x")
    frame.to_csv("p.csv", index=False)
    command("fit", "p.csv", "--method", "set-level", "--out", "c.skops")
    command("apply", "c.skops", "p.csv", "--out", "o.csv", "--keep", "note")
    assert {"id", "note"} <= set(pd.read_csv("o.csv"))
    return ""


def pixels():
    return said(ch.TemperatureScaling().fit, np.zeros((2, 3, 8, 8)), np.zeros(2, int))


def torch_file():
    torch.save({"logits": torch.tensor(LOGITS)}, "p.pt")
    return command("fit", "p.pt", "--out", "c.skops")


def pickle_out():
    np.savez("p.npz", **GIVEN)
    return command("fit", "p.npz", "--out", "x.pkl")


def not_there():
    return command("inspect", "nothere.skops")


def module():
    net = torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.Linear(6, 3))
    cal = ch.TemperatureScaling().fit(LOGITS, LABELS)
    return ch.torch.CalibratedModule(net, cal), torch.tensor(FEATURES)


def exported():
    net, x = module()
    sizes = ({0: torch.export.Dim("batch")},)
    found = torch.export.export(net, (x,), dynamic_shapes=sizes).module()(x[:3])
    assert found.shape == (3, 3)
    return ""


def other_exports():
    for name in ("VectorScaling", "IsotonicCalibration"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of ties
            ch.torch.export_onnx(
                getattr(ch.baselines, name)().fit(LOGITS, LABELS), f"{name}.onnx"
            )
    return ""


def names_of_torch():
    assert {"CalibratedModule", "calibrate", "export_onnx"} <= set(dir(ch.torch))
    return ""


def domains_disagree():
    logits, labels, _, domains = shifted_domains(200, temperatures=(1.0, 5.0, 5.0))
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        ch.SelectByDomain().fit(logits, labels, sample_domain=domains)
    return str(heard[0].message) if heard else ""


def clusters_first():
    return said(ch.TemperatureEnsemble(4).fit, LOGITS, LABELS)  # type: ignore


def saved_booster():
    model = ch.CalibratedClassifier(BOOSTER, ch.TemperatureScaling())
    model.fit(FEATURES, LABELS).save("model.skops")
    return said(ch.load_calibrator, "model.skops")


CASES = {
    "a method of one's own, misspelt": own_method,
    "a booster on a table with gaps and categories": table_with_gaps,
    "tensors in bfloat16, with gradients": tensors,
    "labels that are names, two for three columns": named_labels,
    "`coolhead apply` on a table with an `id`": kept_id,
    "logits per pixel, `(n, k, h, w)`": pixels,
    "a `.pt` file": torch_file,
    "`coolhead fit --out x.pkl`": pickle_out,
    "`coolhead inspect nothere.skops`": not_there,
    "`torch.export` of a `CalibratedModule`, any batch size": exported,
    "vector scaling and isotonic regression to ONNX": other_exports,
    "`dir(ch.torch)`": names_of_torch,
    "left-out domains that were better off before": domains_disagree,
    "`TemperatureEnsemble(4)`": clusters_first,
    "reading a calibrated booster": saved_booster,
}
