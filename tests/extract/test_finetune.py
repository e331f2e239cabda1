"""A whole network learns from images, survives a kill, and ends the same."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from coolhead.io.reading import load_archive
from coolhead.lab.commands.images import train
from coolhead.lab.images import extract, finetune, list_images, load_backbone
from coolhead.lab.images.finetuning import FinetuneSettings, first_layers
from coolhead.lab.images.transform import (
    ImageTransform,
    random_box,
    read_augmented,
)

TINY = "python:tiny_networks:tiny"
SETTINGS = FinetuneSettings(epochs=4, batch_size=4, learning_rate=0.01)


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parent)


def weights(backbone):
    return torch.cat(
        [v.reshape(-1).float() for v in backbone.module.state_dict().values()]
    )


def test_command_from_folder_to_archive(tree, tmp_path, capsys):
    out = tmp_path / "photo.safetensors"
    train(
        tree,
        ["photo"],
        out,
        finetune=True,
        backbone=TINY,
        epochs=12,
        batch_size=4,
        learning_rate=0.02,
    )
    assert "epoch 12: loss" in capsys.readouterr().out
    archive = load_archive(out)
    assert archive.logits.shape == (20, 2) and archive.features.shape == (20, 32)
    seen = archive.select("photo")
    assert np.mean(seen.logits.argmax(1) == seen.labels) >= 0.8
    assert archive.metadata["head"]["source"] == ["photo"]
    division = {"small": 0.2, "stratify": False, "random_state": 0}
    assert archive.metadata["division"] == division
    assert archive.metadata["extraction"]["backbone"] == TINY
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"images", out.name, f"{out.name}.weights.safetensors"}
    again = load_backbone(
        TINY, weights=tmp_path / f"{out.name}.weights.safetensors", n_classes=2
    )
    repeated = extract(tree, again, tmp_path / "b", logits=True, dtype="float32")
    np.testing.assert_array_equal(repeated.logits, archive.logits)


def test_killed_run_goes_on_to_the_same_weights(tree, tmp_path, monkeypatch):
    from coolhead.lab.images import finetuning

    images = list_images(tree)
    whole, killed, resumed = (load_backbone(TINY, n_classes=2) for _ in range(3))
    small = np.arange(20) % 5 == 0
    options = {"small": small, "settings": SETTINGS}
    curve = finetune(images, whole, ["photo"], tmp_path / "a", **options)
    keep = finetuning._Run.keep

    def killed_in_epoch_three(self, path):
        if len(self.curve) == 3:
            raise KeyboardInterrupt
        keep(self, path)

    monkeypatch.setattr(finetuning._Run, "keep", killed_in_epoch_three)
    with pytest.raises(KeyboardInterrupt):
        finetune(images, killed, ["photo"], tmp_path / "b", **options)
    monkeypatch.setattr(finetuning._Run, "keep", keep)
    torch.rand(3)  # whatever the global generator did in between
    assert finetune(images, resumed, ["photo"], tmp_path / "b", **options) == curve
    assert torch.equal(weights(whole), weights(resumed))
    assert len(curve) == 4 and "small_accuracy" in curve[0]


def test_global_generator_is_left_alone(tree, tmp_path):
    images = list_images(tree)
    state = torch.get_rng_state()
    backbone = load_backbone(TINY, n_classes=2)
    finetune(images, backbone, ["photo"], tmp_path / "a", settings=SETTINGS)
    assert torch.equal(state, torch.get_rng_state())


def test_checkpoint_of_another_run_is_refused(tree, tmp_path):
    images, place = list_images(tree), tmp_path / "a"
    short = replace(SETTINGS, epochs=1)
    backbone = load_backbone(TINY, n_classes=2)
    finetune(images, backbone, ["photo"], place, settings=short)
    with pytest.raises(ValueError, match="of another run"):
        fresh = load_backbone(TINY, n_classes=2)
        finetune(images, fresh, ["sketch"], place, settings=short)


def test_bad_arguments(tree, tmp_path):
    images = list_images(tree)
    with pytest.raises(ValueError, match="end in 2 linear outputs; found 10"):
        finetune(
            images, load_backbone(TINY), ["photo"], tmp_path / "a", settings=SETTINGS
        )
    with pytest.raises(ValueError, match="exceeds the 10 source images"):
        finetune(images, load_backbone(TINY, n_classes=2), ["photo"], tmp_path / "a")
    with pytest.raises(ValueError, match="'foto' is not in"):
        finetune(images, load_backbone(TINY, n_classes=2), ["foto"], tmp_path / "a")
    with pytest.raises(ValueError, match="batch_size at least 2"):
        FinetuneSettings(batch_size=1)
    with pytest.raises(ValueError, match="coolhead extract first"):
        train(tree, ["photo"], tmp_path / "x.safetensors")


def test_crops_stay_inside_and_repeat_by_seed(tree):
    rng = np.random.default_rng(0)
    for _ in range(100):
        left, top, right, bottom = random_box((40, 30), 0.875, rng)
        assert left >= 0 and right <= 40 and top >= 0 and bottom <= 30
        assert right - left == pytest.approx(0.875 * 30)
    path, transform = tree / "photo" / "china" / "0.jpg", ImageTransform(size=32)
    read = read_augmented(np.array([1, 1, 2]))
    first, same, other = (read(row, path, transform) for row in range(3))
    np.testing.assert_array_equal(first, same)
    assert not np.array_equal(first, other)


def test_head_command(tmp_path, capsys):
    from coolhead.io.archive import DomainArchive

    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=200)
    archive = DomainArchive(
        features=rng.normal(size=(200, 5)) + 3 * np.eye(3, 5)[labels],
        labels=labels,
        domains=np.repeat(["a", "b"], 100),
    )
    archive.save(tmp_path / "in.safetensors")
    train(tmp_path / "in.safetensors", ["a"], tmp_path / "out.safetensors", epochs=5)
    assert "epoch 5: loss" in capsys.readouterr().out
    assert load_archive(tmp_path / "out.safetensors").logits.shape == (200, 3)


@pytest.mark.parametrize("frozen", [0.0, 0.5])
def test_frozen_layers_stay_and_the_others_learn(tree, tmp_path, frozen):
    images = list_images(tree)
    before, after = (load_backbone(TINY, n_classes=2) for _ in range(2))
    settings = FinetuneSettings(
        epochs=2, batch_size=4, learning_rate=0.1, frozen=frozen
    )
    finetune(images, after, ["photo"], tmp_path / "checkpoint", settings=settings)
    layers = first_layers(after.module, 1.0)
    kept = len(first_layers(after.module, frozen))
    for number, (old, new) in enumerate(
        zip(first_layers(before.module, 1.0), layers, strict=True)
    ):
        same = [
            torch.equal(old.state_dict()[name], value)
            for name, value in new.state_dict().items()
        ]
        assert all(same) if number < kept else not all(same)
    assert all(parameter.requires_grad for parameter in after.module.parameters())


def test_frozen_share_of_everything_is_refused():
    with pytest.raises(ValueError, match=r"frozen must be a share .* found 1.0"):
        FinetuneSettings(frozen=1.0)
