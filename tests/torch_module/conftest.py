"""Every calibrator of the package, fitted and exported once for all tests."""

from typing import Any, NamedTuple

import numpy as np
import onnxruntime
import pytest
import torch
from exported import CALIBRATORS, EXPORTED, PROBLEMS
from threadpoolctl import threadpool_limits

from contract.problems import fitted
from coolhead.calibrators.ensemble import TemperatureEnsemble
from coolhead.torch import CalibratedSoftmax, export_onnx


class Case(NamedTuple):
    """A calibrator in NumPy, in torch, and as a session of onnxruntime."""

    calibrator: Any
    module: CalibratedSoftmax
    session: onnxruntime.InferenceSession

    def run(self, logits, features):
        names = [node.name for node in self.session.get_inputs()]
        given = {"logits": logits, "features": features}
        found = self.session.run(None, {name: given[name] for name in names})
        return dict(zip(self.module.outputs, found, strict=True))


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """Problems this small are slower on several threads that wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with threadpool_limits(1):
        yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def cases(one_thread, tmp_path_factory):
    """A function (calibrator's name, problem's name) → Case, made once each."""
    made = {}
    path = tmp_path_factory.mktemp("onnx") / "calibrator.onnx"

    def case(name, problem):
        if (name, problem) not in made:
            calibrator = fitted(CALIBRATORS[name], PROBLEMS[problem])
            module = CalibratedSoftmax(calibrator)
            # A tie would warn, and here a warning is an error.
            export_onnx(module, path, outputs=module.outputs)
            session = onnxruntime.InferenceSession(
                path.read_bytes(), providers=["CPUExecutionProvider"]
            )
            made[name, problem] = Case(calibrator, module, session)
        return made[name, problem]

    return case


@pytest.fixture(scope="session", params=EXPORTED)
def case(request, cases):
    """Every calibrator, fitted on the ordinary problem."""
    return cases(request.param, "ordinary")


@pytest.fixture(scope="session")
def problem():
    """The ordinary problem as arguments of `fit`."""
    ordinary = PROBLEMS["ordinary"]
    return {
        "logits": ordinary["logits"],
        "labels": ordinary["labels"],
        "features": ordinary["features"],
        "sample_domain": ordinary["domains"],
    }


@pytest.fixture(scope="session")
def ensemble(problem):
    return TemperatureEnsemble().fit(**problem)


@pytest.fixture(scope="session")
def queries(problem):
    """Rows of another batch, some far from everything that was calibrated."""
    rng = np.random.default_rng(8)
    n_classes, n_features = (problem[n].shape[1] for n in ("logits", "features"))
    logits = rng.normal(scale=4, size=(1000, n_classes)).astype(np.float32)
    features = rng.normal(scale=1.5, size=(1000, n_features)).astype(np.float32)
    return logits, features
