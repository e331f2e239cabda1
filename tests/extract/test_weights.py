"""Local weights: strict but for the classifier, and the message names what is wrong."""

import pytest
from test_extract import tiny_network

torch = pytest.importorskip("torch")

from coolhead.lab.images import load_backbone
from coolhead.lab.images.backbones import load_weights


@pytest.mark.parametrize("suffix", [".pth", ".safetensors"])
def test_local_weights(tmp_path, suffix):
    from safetensors.torch import save_file

    net, path = tiny_network(), tmp_path / f"weights{suffix}"
    state = net.state_dict()
    if suffix == ".pth":
        torch.save({"state_dict": {f"module.{k}": v for k, v in state.items()}}, path)
    else:
        save_file(state, path)
    other = tiny_network()
    with torch.no_grad():
        other[6].bias.zero_()
    load_weights(other, path)
    assert torch.equal(other[6].bias, net[6].bias)
    with pytest.raises(ValueError, match="does not fit"):
        load_weights(tiny_network(7), path)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        load_weights(net, tmp_path / "none.pth")


def save(state, path):
    torch.save(dict(state), path)
    return path


def test_a_classifier_of_another_width_starts_anew(tmp_path):
    path = save(tiny_network(10).state_dict(), tmp_path / "w.pth")
    net = tiny_network(3)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.fill_(7)
    with pytest.warns(UserWarning, match="starts anew: .* has none of 3 classes"):
        load_weights(net, path, new_classifier=True)
    assert (net[6].weight == 7).all() and (net[6].bias == 7).all()
    assert torch.equal(net[0].weight, tiny_network()[0].weight)
    load_weights(tiny_network(10), path, new_classifier=True)  # fits: no warning


@pytest.mark.parametrize("new_classifier", [False, True])
def test_all_that_does_not_fit_is_listed(tmp_path, new_classifier):
    state = tiny_network().state_dict()
    state["0.bias"] = torch.zeros(9)
    state["head.bias"] = state.pop("1.weight")
    path = save(state, tmp_path / "w.pth")
    net = tiny_network()
    with pytest.raises(ValueError, match="does not fit") as caught:
        load_weights(net, path, new_classifier=new_classifier)
    for part in ('"1.weight"', '"head.bias"', "size mismatch for 0.bias"):
        assert part in str(caught.value)


def test_files_that_do_not_count_batches_fit(tmp_path):
    state = tiny_network().state_dict()
    del state["1.num_batches_tracked"]
    load_weights(tiny_network(), save(state, tmp_path / "w.pth"))


def test_a_file_that_is_no_state_dict(tmp_path):
    with pytest.raises(ValueError, match="is not a plain state dict"):
        load_weights(tiny_network(), save_list(tmp_path / "w.pth"))


def save_list(path):
    torch.save([1, 2], path)
    return path


def test_efficientnet_lite0_from_a_file_of_imagenet(tmp_path):
    published = load_backbone("efficientnet-lite0").module
    path = save(published.state_dict(), tmp_path / "imagenet.pth")
    name = "efficientnet-lite0"
    first, same, other = (
        _with_warning(name, weights=path, n_classes=3, random_state=seed).module
        for seed in (0, 0, 1)
    )
    assert first._fc.weight.shape == (3, 1280)
    assert torch.equal(first._fc.weight, same._fc.weight)
    assert not torch.equal(first._fc.weight, other._fc.weight)
    state = first.state_dict()
    for key, value in published.state_dict().items():
        assert key.startswith("_fc") or torch.equal(state[key], value)
    with pytest.raises(ValueError, match=r"size mismatch for _fc\.weight"):
        load_backbone(name, weights=path, n_classes=3, new_classifier=False)


def _with_warning(*arguments, **options):
    with pytest.warns(UserWarning, match="has none of 3 classes"):
        return load_backbone(*arguments, **options)
