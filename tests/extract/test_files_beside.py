"""What lies beside the output already: weights, checkpoints and parts of others."""

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from coolhead.lab.images import extract, list_images
from coolhead.lab.images.backbones import load_weights
from coolhead.lab.images.extraction import MARK, shard_folder
from coolhead.lab.images.finetuning import finetune_and_extract

TINY = "python:tiny_networks:tiny"


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parent)


def begin(tree, out, **options):
    settings = {"epochs": 1, "batch_size": 4}
    finetune_and_extract(
        list_images(tree), ["photo"], out, backbone=TINY, settings=settings, **options
    )


def test_the_weights_given_are_not_written_over(tree, tmp_path):
    out = tmp_path / "x.safetensors"
    begin(tree, out)
    weights = Path(f"{out}.weights.safetensors")
    before = weights.read_bytes()
    with pytest.raises(ValueError, match="it is the input"):
        begin(tree, out, weights=weights)
    assert weights.read_bytes() == before


def no_checkpoint(path):
    path.write_text("mine!")


def of_others(path):
    torch.save({"epoch": 3}, path)


@pytest.mark.parametrize("make", [no_checkpoint, of_others, Path.mkdir])
def test_a_checkpoint_of_others_is_left_alone(tree, tmp_path, make):
    place = tmp_path / "x.safetensors.checkpoint"
    make(place)
    before = None if place.is_dir() else place.read_bytes()
    with pytest.raises(ValueError, match="is no checkpoint of coolhead") as failure:
        begin(tree, tmp_path / "x.safetensors")
    assert "\n" not in str(failure.value) and str(place) in str(failure.value)
    assert place.is_dir() or place.read_bytes() == before


@pytest.mark.parametrize("name", ["w.safetensors", "w.pth"])
def test_weights_that_are_none(tmp_path, name):
    (tmp_path / name).write_text("nonsense")
    with pytest.raises(ValueError, match="is not a plain state dict"):
        load_weights(torch.nn.Linear(1, 1), tmp_path / name)
    torch.save({3: torch.zeros(1)}, tmp_path / "numbers.pth")
    with pytest.raises(ValueError, match="is not a plain state dict"):
        load_weights(torch.nn.Linear(1, 1), tmp_path / "numbers.pth")


@pytest.mark.parametrize("device", ["abacus", "mps:99", ""])
def test_a_device_that_is_none(tree, tmp_path, device):
    with pytest.raises(ValueError, match=r"device is .* torch cannot use here"):
        begin(tree, tmp_path / "x.safetensors", device=device)
    with pytest.raises(ValueError, match=r"device is .* torch cannot use here"):
        extract(tree, TINY, tmp_path / "y.safetensors", device=device)


@pytest.mark.parametrize("text", ["{nonsense", "[1, 2]", "\x00"])
def test_a_damaged_mark_names_the_folder(tmp_path, text):
    parts = tmp_path / "x.parts"
    parts.mkdir()
    (parts / MARK).write_text(text)
    with (
        pytest.raises(ValueError, match=r"is damaged: delete .*x\.parts"),
        shard_folder(parts, {"n": 1}),
    ):
        pass


def test_parts_that_can_be_no_folder(tmp_path):
    (tmp_path / "file.parts").touch()
    (tmp_path / "link.parts").symlink_to(tmp_path / "nowhere")
    for name, kind in (("file", "a file"), ("link", "a link to nothing")):
        shards = shard_folder(tmp_path / f"{name}.parts", {})
        with pytest.raises(NotADirectoryError, match=f"is {kind}"), shards:
            pass


def test_a_folder_without_finished_rows_is_removed(tmp_path):
    with (
        pytest.raises(KeyboardInterrupt),
        shard_folder(tmp_path / "x.parts", {"n": 1}) as folder,
    ):
        assert (folder / MARK).exists()
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())
