"""A small tree of real photographs: two domains, two classes."""

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_sample_images

N_PER_CLASS = 5


@pytest.fixture(scope="session")
def photographs():
    """Crops of scikit-learn's two photographs: (china, flower)."""
    rng = np.random.default_rng(0)
    crops = {}
    for name, image in zip(
        ("china", "flower"), load_sample_images().images, strict=True
    ):
        corners = rng.integers(0, [427 - 160, 640 - 160], size=(2 * N_PER_CLASS, 2))
        crops[name] = [image[y : y + 160, x : x + 160] for y, x in corners]
    return crops


@pytest.fixture
def tree(photographs, tmp_path):
    """photo/ as JPEG, sketch/ as greyscale PNG of another size."""
    root = tmp_path / "images"
    for name, crops in photographs.items():
        for domain in ("photo", "sketch"):
            (root / domain / name).mkdir(parents=True)
        for i in range(N_PER_CLASS):
            Image.fromarray(crops[i]).save(root / "photo" / name / f"{i}.jpg")
            grey = Image.fromarray(crops[N_PER_CLASS + i]).convert("L")
            grey.resize((120, 90)).save(root / "sketch" / name / f"{i}.png")
    return root
