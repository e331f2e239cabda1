"""The command line inside this process, and a small tree of images."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from small_tree import DOMAINS, N_PER_CLASS, PROTOCOL

from command_line import run  # noqa: F401


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parent.parent / "extract")


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """Four domains, in which light and dark pictures are the two classes."""
    root = tmp_path_factory.mktemp("small") / "images {x}"
    rng = np.random.default_rng(0)
    for code, domain in enumerate(DOMAINS):
        for name, light in (("dark", 60), ("light å", 120)):
            (root / domain / name).mkdir(parents=True)
            for i in range(N_PER_CLASS):
                pixels = rng.normal(light + 15 * code, 40, size=(20, 24, 3))
                image = Image.fromarray(pixels.clip(0, 255).astype(np.uint8))
                image.save(root / domain / name / f"{i}.png")
    return root


@pytest.fixture
def protocol(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(PROTOCOL.format(train_path=""))
    return path
