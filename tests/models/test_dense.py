"""Features of pixels and tokens, predictions block by block, and several crops."""

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

import coolhead as ch
from coolhead.models import dense, dense_rows, predict_dense

RNG = np.random.default_rng(0)
SHAPES = {  # logits, features, and how often each feature stands beside itself
    "pixels": ((4, 3, 6, 8), (4, 5, 6, 8), (1, 1)),
    "coarse map": ((4, 3, 6, 8), (4, 5, 3, 2), (2, 4)),
    "tokens": ((4, 12, 3), (4, 12, 5), (1,)),
    "coarse tokens": ((4, 12, 3), (4, 4, 5), (3,)),
}


@pytest.fixture(params=SHAPES)
def scene(request):
    """Logits, labels, a map of features, and the same map as fine as the logits."""
    shape, width, steps = SHAPES[request.param]
    axis = 1 if len(shape) == 4 else 2
    z, features = RNG.normal(size=shape), RNG.normal(size=width)
    fine = np.moveaxis(features, axis, -1)
    for dim, step in enumerate(steps, 1):
        fine = np.repeat(fine, step, axis=dim)
    labels = (z + RNG.gumbel(size=shape)).argmax(axis=axis)
    labels[:, 0] = 255
    return 3 * z, labels, features, fine


def test_a_place_has_the_features_that_lie_there(scene):
    logits, labels, features, fine = scene
    rows = dense_rows(logits, labels, features=features, ignore_index=255)
    np.testing.assert_array_equal(rows.features, fine[labels != 255])
    few = dense_rows(logits, labels, features=features, ignore_index=255, most=20)
    assert len(few.logits) == few.kept.sum() == 20
    np.testing.assert_array_equal(few.features, fine[few.kept])
    np.testing.assert_array_equal(few.labels, labels[few.kept])


def test_blocks_make_no_difference(scene, monkeypatch):
    logits, labels, features, fine = scene
    rows = dense_rows(logits, labels, features=features, ignore_index=255)
    cal = ch.NearestClusterTemperature(3).fit(
        rows.logits, rows.labels, features=rows.features
    )
    flat = dense_rows(logits)
    want = flat.restore(cal.predict_proba(flat.logits, fine.reshape(-1, 5)))
    sizes = []

    def few_rows(n_rows, n_columns):
        for start in range(0, n_rows, 7):
            sizes.append(n_columns)
            yield slice(start, min(start + 7, n_rows))

    monkeypatch.setattr(dense, "row_blocks", few_rows)
    np.testing.assert_allclose(predict_dense(cal, logits, features), want, rtol=1e-12)
    assert set(sizes) == {8} and len(sizes) > 5
    plain = ch.TemperatureScaling().fit(rows.logits, rows.labels)
    found = predict_dense(plain, logits)
    np.testing.assert_allclose(
        found, flat.restore(plain.predict_proba(flat.logits)), rtol=1e-12
    )


class Segmenter(torch.nn.Module):
    """A map of features at half the size, then logits of every pixel."""

    def __init__(self):
        super().__init__()
        self.trunk = torch.nn.Conv2d(1, 5, 3, stride=2, padding=1)
        self.head = torch.nn.ConvTranspose2d(5, 3, 2, stride=2)

    def forward(self, images):
        return 4 * self.head(self.trunk(images))


def test_a_network_whose_pixels_have_features():
    torch.manual_seed(0)
    net, images = Segmenter(), torch.randn(12, 1, 8, 8)
    labels = torch.randint(0, 3, (12, 8, 8))
    loader = DataLoader(TensorDataset(images, labels), batch_size=5)
    method = ch.NearestClusterTemperature(3)
    whole = ch.torch.calibrate(net, loader, method, feature_layer="trunk")
    with torch.no_grad():
        logits, features = net(images), net.trunk(images)
    rows = dense_rows(logits, labels, features=features)
    cal = method.fit(rows.logits, rows.labels, features=rows.features)
    whole.requires_grad_(False)
    found = whole.details(images)
    want = predict_dense(cal, logits, features)
    np.testing.assert_allclose(found.probabilities, want, atol=1e-5)
    np.testing.assert_allclose(
        found.temperature,
        rows.restore(cal.temperature(rows.logits, rows.features)),
        rtol=1e-5,
    )
    assert found.covered.shape == labels.shape
    sizes = ({0: torch.export.Dim("batch")},)
    graph = torch.export.export(whole, (images,), dynamic_shapes=sizes).module()
    np.testing.assert_allclose(graph(images[:2]), found.probabilities[:2], atol=1e-6)
    with pytest.raises(ValueError, match="wanted feature_layer, the name of a layer"):
        ch.torch.CalibratedModule(net, cal)(images)


@pytest.mark.parametrize(
    "work, message",
    [
        (
            lambda: dense_rows(np.zeros((2, 3, 4, 4)), features=np.zeros((3, 5, 4, 4))),
            r"features has shape \(3, 5, 4, 4\); wanted \(n, d, h, w\) with n = 2",
        ),
        (
            lambda: predict_dense(ch.TemperatureScaling(), np.zeros((2, 3))),
            "are rows already",
        ),
    ],
)
def test_what_is_refused(work, message):
    with pytest.raises(ValueError, match=message):
        work()
