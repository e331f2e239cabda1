"""Images become the features the network computes, whatever happens on the way."""

import os
import resource
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import numpy as np
import pytest
from PIL import Image

torch = pytest.importorskip("torch")

from coolhead.io.reading import load_archive
from coolhead.lab.images import (
    Backbone,
    ImageTransform,
    extract,
    extraction,
    list_images,
    load_backbone,
)
from coolhead.models.libraries import frozen
from coolhead.torch.features import feature_reader

SMALL = ImageTransform(size=32, crop=1.0)


def tiny_network(n_classes=2):
    torch_rng = torch.Generator().manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 6, 3, stride=2),
        torch.nn.BatchNorm2d(6),
        torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
        torch.nn.Dropout(0.5),
        torch.nn.Linear(6, n_classes),
    )
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=torch_rng) * 0.3)
    return net


def tiny(n_classes=2):
    return Backbone(tiny_network(n_classes), SMALL)


def test_features_and_logits_are_the_networks(tree, tmp_path):
    net = tiny_network()
    out = tmp_path / "tiny.safetensors"
    backbone = Backbone(net, SMALL)
    archive = extract(tree, backbone, out, dtype="float32", logits=True)
    assert len(archive) == 20 and archive.domain_names == ("photo", "sketch")
    assert net.training, "the module's own mode must come back"
    net.eval()
    for row in (0, 7, 19):
        with Image.open(tree / archive.ids[row]) as image:
            x = torch.from_numpy(SMALL(image))[None]
        with torch.no_grad():
            features, logits = net[:-1](x), net(x)
        np.testing.assert_allclose(archive.features[row], features[0], atol=1e-5)
        np.testing.assert_allclose(archive.logits[row], logits[0], atol=1e-5)
        assert archive.class_names[archive.labels[row]] in archive.ids[row]
    assert not (tmp_path / "tiny.safetensors.parts").exists()


def test_efficientnet_lite0_on_real_images(tree, tmp_path):
    pytest.importorskip("efficientnet_lite_pytorch")
    out = tmp_path / "lite.safetensors"
    archive = extract(tree, "efficientnet-lite0", out, batch_size=8)
    record = archive.metadata["extraction"]
    assert archive.features.shape == (20, 1280)
    assert archive.features.dtype == np.float16
    # The last activation is ReLU6, and its average is the feature.
    assert archive.features.min() >= 0 and archive.features.max() <= 6
    assert record["backbone"] == "efficientnet-lite0"
    assert record["transform"]["size"] == 224 and len(record["weights_sha256"]) == 64
    assert {"coolhead", "torch", "pillow"} <= set(record["versions"])
    features = archive.features.astype(float)
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    nearest = np.argsort(-features @ features.T, axis=1)[:, 1]
    assert np.mean(archive.labels[nearest] == archive.labels) > 0.9


def test_pixels_of_the_lite_transform():
    transform = load_backbone("efficientnet-lite0").transform
    grey = Image.fromarray(np.full((256, 300, 3), 200, np.uint8))
    np.testing.assert_allclose(transform(grey), (200 - 127) / 128, atol=1e-6)


def test_the_published_weights_know_photographs(photographs):
    """The ImageNet classifier itself: a daisy-like flower is no building."""
    backbone = load_backbone("efficientnet-lite0")
    crops = [*photographs["china"][:3], *photographs["flower"][:3]]
    images = [backbone.transform(Image.fromarray(crop)) for crop in crops]
    with frozen(backbone.module):
        classes = backbone.module(torch.from_numpy(np.stack(images))).argmax(1).tolist()
    assert not set(classes[:3]) & set(classes[3:])


def test_feature_layer_by_name_is_pooled(tree, tmp_path):
    net = tiny_network()
    layer = Backbone(net, SMALL, "tiny", "2")
    archive = extract(tree, layer, tmp_path / "a.safetensors", dtype="float32")
    plain = extract(tree, Backbone(net, SMALL), tmp_path / "b.safetensors")
    np.testing.assert_allclose(archive.features, plain.features, atol=2e-3)
    with pytest.raises(ValueError, match=r"'no\.such' is not in the network"):
        extract(tree, Backbone(net, SMALL, "tiny", "no.such"), tmp_path / "c")


def test_no_gradient_and_evaluation_mode_are_enforced():
    net = tiny_network().train()
    images = torch.ones(4, 3, 32, 32)
    with frozen(net), feature_reader(net) as read:
        assert not net[5].training
        features, _ = read(images)
        again, _ = read(images)
    assert not features.requires_grad and torch.equal(features, again)
    assert net[5].training and not net[6]._forward_pre_hooks


KILLED = """
import os, sys, time
sys.path.insert(0, {tests!r})
from test_extract import tiny
import coolhead.lab.images.extraction as extraction
extraction.SHARD_ROWS = 4
shard = extraction._shard
def slowly(*arguments):
    time.sleep(0.5)
    return shard(*arguments)
extraction._shard = slowly
extraction.extract({tree!r}, tiny(), {out!r}, batch_size=2)
"""


def test_killed_half_way_goes_on_to_the_same_bytes(tree, tmp_path, monkeypatch):
    monkeypatch.setattr("coolhead.lab.images.extraction.SHARD_ROWS", 4)
    extract(tree, tiny(), tmp_path / "whole", batch_size=2)
    out = tmp_path / "killed"
    program = KILLED.format(
        tests=os.path.dirname(__file__), tree=str(tree), out=str(out)
    )
    process = subprocess.Popen([sys.executable, "-c", program])
    parts = tmp_path / "killed.parts"
    deadline = time.monotonic() + 240
    while len(list(parts.glob("[0-9]*"))) < 2:
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    kept = {p.name: p.stat().st_mtime_ns for p in parts.glob("[0-9]*")}
    assert 2 <= len(kept) < 5 and not out.exists()
    # Rows of finished shards are not computed again: their images may be gone.
    calls = []
    original = extraction.read_batches

    def counted(paths, *rest, **options):
        calls.extend(paths)
        return original(paths, *rest, **options)

    monkeypatch.setattr(extraction, "read_batches", counted)
    extract(tree, tiny(), out, batch_size=2)
    assert len(calls) == (5 - len(kept)) * 4
    assert out.read_bytes() == (tmp_path / "whole").read_bytes()


def test_stopped_by_a_key_goes_on_to_the_same_bytes(tree, tmp_path, monkeypatch):
    options = {"batch_size": 2, "logits": True}
    out = tmp_path / "x"
    with monkeypatch.context() as patch:
        stop_after_first_shard(patch)
        with pytest.raises(KeyboardInterrupt):
            extract(tree, tiny(), out, **options)
    monkeypatch.setattr("coolhead.lab.images.extraction.SHARD_ROWS", 4)
    extract(tree, tiny(), out, **options, workers=1)
    extract(tree, tiny(), tmp_path / "whole", **options, workers=3)
    assert out.read_bytes() == (tmp_path / "whole").read_bytes()


def replace_by_one_of_the_same_size(tree):
    """The last image that the first shard did not see."""
    path = tree / "sketch" / "flower" / "4.png"
    content = path.read_bytes()
    path.write_bytes(content[:-1] + b"x")
    assert path.stat().st_size == len(content)


@pytest.mark.parametrize(
    ("options", "change", "message"),
    [
        ({"batch_size": 4}, None, "batch_size=2, now it is 4"),
        ({}, replace_by_one_of_the_same_size, "begun with images_sha256="),
    ],
)
def test_another_plan_is_refused(tree, tmp_path, monkeypatch, options, change, message):
    out = tmp_path / "x.safetensors"
    given = {"batch_size": 2}
    stop_after_first_shard(monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        extract(tree, tiny(), out, **given)
    if change:
        change(tree)
    with pytest.raises(ValueError, match=message):
        extract(tree, tiny(), out, **given | options)


def test_a_foreign_folder_is_left_alone(tree, tmp_path):
    parts = tmp_path / "x.parts"
    parts.mkdir()
    (parts / "thesis.tex").write_text("three years")
    (parts / "000000.safetensors").write_text("not ours")
    with pytest.raises(
        FileExistsError, match=r"x\.parts is a folder that coolhead did"
    ):
        extract(tree, tiny(), tmp_path / "x")
    assert sorted(path.name for path in parts.iterdir()) == [
        "000000.safetensors",
        "thesis.tex",
    ]


def test_a_foreign_file_among_the_shards_is_kept(tree, tmp_path, monkeypatch):
    out = tmp_path / "x"
    with monkeypatch.context() as patch:
        stop_after_first_shard(patch)
        with pytest.raises(KeyboardInterrupt):
            extract(tree, tiny(), out, batch_size=2)
    (tmp_path / "x.parts" / "notes.txt").write_text("mine")
    monkeypatch.setattr("coolhead.lab.images.extraction.SHARD_ROWS", 4)
    extract(tree, tiny(), out, batch_size=2)
    assert (tmp_path / "x.parts" / "notes.txt").read_text() == "mine"
    assert out.exists()


def test_a_second_extraction_into_the_same_place_is_refused(tree, tmp_path):
    parts = tmp_path / "x.parts"
    parts.mkdir()
    with (
        extraction.only_one(parts / extraction.LOCK),
        pytest.raises(BlockingIOError, match=f"use by process {os.getpid()}"),
    ):
        extract(tree, tiny(), tmp_path / "x")
    extract(tree, tiny(), tmp_path / "x")
    assert [path.name for path in tmp_path.glob("x*")] == ["x"]


def stop_after_first_shard(monkeypatch):
    shard, begun = extraction._shard, []

    def once(*arguments):
        if begun:
            raise KeyboardInterrupt
        begun.append(True)
        return shard(*arguments)

    monkeypatch.setattr(extraction, "SHARD_ROWS", 4)
    monkeypatch.setattr(extraction, "_shard", once)


def test_corrupt_images_are_all_listed_or_skipped(tree, tmp_path):
    table = list_images(tree)
    for name in ("photo/china/1.jpg", "photo/flower/2.jpg"):
        whole = (tree / name).read_bytes()
        (tree / name).write_bytes(whole[: len(whole) // 2])
    out = tmp_path / "x.safetensors"
    message = r"2 unusable(.|\n)*china/1(.|\n)*flower/2"
    with pytest.raises(ValueError, match=message):
        extract(tree, tiny(), out)
    assert [path.name for path in tmp_path.iterdir()] == ["images"]
    # Damaged after they were looked at.
    with pytest.raises(ValueError, match=message):
        extract(table, tiny(), tmp_path / "y")
    archive = extract(tree, tiny(), out, skip_bad=True)
    assert len(archive) == 18
    assert not {"photo/china/1.jpg", "photo/flower/2.jpg"} & set(archive.ids)
    skipped = archive.metadata["extraction"]["skipped"]
    assert len(skipped) == 2 and "china/1.jpg: unreadable" in skipped[0]


def test_overflow_in_half_precision_is_an_error(tree, tmp_path):
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, 2))
    with torch.no_grad():
        net[1].weight.fill_(1e4)
    with pytest.raises(ValueError, match=r"not finite in float16.*float32"):
        extract(tree, Backbone(net, SMALL, "tiny", "1"), tmp_path / "x")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dtype": "float8"}, "dtype must be"),
        ({"batch_size": 0}, "batch_size"),
        ({"workers": 0}, "workers"),
    ],
)
def test_bad_arguments(tree, tmp_path, arguments, message):
    with pytest.raises(ValueError, match=message):
        extract(tree, tiny(), tmp_path / "x", **arguments)


def test_logits_of_another_width_are_refused(tree, tmp_path):
    with pytest.raises(ValueError, match=r"\(20, 5\).*2 classes"):
        extract(tree, tiny(5), tmp_path / "x", logits=True)
    assert [path.name for path in tmp_path.iterdir()] == ["images"]


def test_no_place_to_write(tree, tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        extract(tree, tiny(), tmp_path / "no" / "x")
    (tmp_path / "y.parts").write_text("a file in the way")
    with pytest.raises(OSError, match=r"y\.parts"):
        extract(tree, tiny(), tmp_path / "y")


def test_no_write_permission(tree):
    with pytest.raises(OSError, match=r"/proc/x\.parts"):
        extract(tree, tiny(), "/proc/x")


@contextmanager
def files_of_at_most(n_bytes):
    """The system refuses to let any file grow beyond a size, as a full disk would."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("limit", [1000, 2500])
def test_full_disk_leaves_the_old_archive_whole(tree, tmp_path, limit):
    """First a shard does not fit, then all shards do but not the archive."""
    out = tmp_path / "x.safetensors"
    options = {"logits": True, "dtype": "float32"}
    extract(tree, tiny(), out, **options)
    before = out.read_bytes()
    with pytest.raises(OSError, match="cannot write"), files_of_at_most(limit):
        extract(tree, tiny(), out, **options)
    kept = list((tmp_path / "x.safetensors.parts").glob("[0-9]*"))
    assert len(kept) == (limit == 2500)
    assert out.read_bytes() == before
    extract(tree, tiny(), out, **options)
    assert out.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["images", "x.safetensors"]


def test_backbone_names(monkeypatch):
    with pytest.raises(ValueError, match=r"efficientnet-lite0, timm:NAME, .*python"):
        load_backbone("resnet18")
    for package in ("timm", "torchvision"):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(ImportError, match=rf"{package}:r.*coolhead\[vision\]"):
            load_backbone(f"{package}:resnet18")


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "CMYK", "1", "I;16", "LA"])
def test_every_kind_of_image_is_read(mode, tmp_path):
    values = np.linspace(0, 255, 40 * 60).reshape(40, 60).astype(np.uint8)
    image = Image.fromarray(values)
    if mode == "I;16":
        image = Image.fromarray(values.astype(np.uint16) * 257)
    elif mode == "P":
        image = image.convert("RGB").quantize(16)
        image.info["transparency"] = bytes(range(16))
    else:
        image = image.convert(mode)
    found = ImageTransform(size=16, crop=1.0, mean=(0, 0, 0), std=(1, 1, 1))(image)
    assert found.shape == (3, 16, 16) and found.dtype == np.float32
    assert 0.4 < found.mean() < 0.6


@pytest.mark.parametrize("crop", [1.0, 0.95, 0.9, 0.875])
@pytest.mark.parametrize("shape", [(97, 141), (333, 200), (50, 50), (30, 401)])
def test_one_resampling_is_resize_then_crop(crop, shape):
    """The usual two steps, done by Pillow, give the same pixels within a level."""
    values = np.random.default_rng(0).integers(0, 256, (*shape, 3), dtype=np.uint8)
    image = Image.fromarray(values)
    transform = ImageTransform(64, crop, mean=(0, 0, 0), std=(1 / 255,) * 3)
    shorter = int(64 / crop)
    width, height = (int(shorter * side / min(image.size)) for side in image.size)
    left, top = round((width - 64) / 2), round((height - 64) / 2)
    resized = image.resize((width, height), Image.Resampling.BICUBIC)
    wanted = resized.crop((left, top, left + 64, top + 64))
    found = transform(image).transpose(1, 2, 0)
    np.testing.assert_allclose(found, np.asarray(wanted), atol=1.01)


def test_command(tree, tmp_path, capsys):
    from coolhead.lab.commands.images import extract as command

    out = tmp_path / "x.safetensors"
    with pytest.raises(ValueError, match="know 1000 classes, the images have 2"):
        command(tree, out, logits=True)
    assert not out.exists()
    command(tree, out)
    assert "20 rows" in capsys.readouterr().out
    assert load_archive(out).features.shape == (20, 1280)
