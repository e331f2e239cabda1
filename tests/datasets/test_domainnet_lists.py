"""DomainNet's lists decide on labels, and Painting really lacks classes."""

import pytest
from PIL import Image

from coolhead.lab.images import list_images, split_large_small

DOMAINS = ("clipart", "infograph", "painting", "quickdraw", "real", "sketch")
# The folders' order and the lists' labels differ on purpose.
CLASSES = ("zebra", "t-shirt", "apple", "syringe")


@pytest.fixture
def domainnet(tmp_path):
    for domain in DOMAINS:
        for role, missing in (("train", "t-shirt"), ("test", "syringe")):
            lines = []
            for label, name in enumerate(CLASSES):
                if domain == "painting" and name == missing:
                    continue
                for number in range(10):
                    path = f"{domain}/{name}/{domain}_{label:03}_{role}{number}.jpg"
                    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
                    Image.new("RGB", (4, 4)).save(tmp_path / path)
                    lines.append(f"{path} {label}\n")
            (tmp_path / f"{domain}_{role}.txt").write_text("".join(lines))
    return tmp_path


def test_labels_come_from_the_lists(domainnet):
    table = list_images(domainnet)
    assert table.class_names == CLASSES
    assert table.domain_names == DOMAINS
    assert len(table) == 6 * 80 - 20
    for path, label in zip(table.paths, table.labels, strict=True):
        assert path.split("/")[1] == CLASSES[label]
    painting = table.select("painting")
    assert set(painting.only("train").labels) == {0, 2, 3}
    assert set(painting.only("test").labels) == {0, 1, 2}


def test_missing_painting_classes_are_said(domainnet):
    differences = list_images(domainnet).differences
    assert "painting train has no images of t-shirt (1)" in differences
    assert "painting test has no images of syringe (3)" in differences


def test_one_tenth_of_the_test_list_is_small(domainnet):
    test = list_images(domainnet).only("test")
    small = test.rows(split_large_small(test, small=0.1)).domain_sizes()
    assert small == dict.fromkeys(DOMAINS, 4) | {"painting": 3}


def test_a_listed_image_that_is_missing(domainnet):
    (domainnet / "real" / "apple" / "real_002_test3.jpg").unlink()
    with pytest.raises(ValueError, match=r"real/apple/real_002_test3\.jpg: missing"):
        list_images(domainnet)
    table = list_images(domainnet, skip_bad=True)
    assert len(table) == 459
    assert table.problems[0].reason == "missing"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("real/apple/real_002_test0.jpg", r"real_train\.txt, line 41: found"),
        ("real/apple/x.jpg two", "line 41"),
        ("real/apple/real_002_test0.jpg 2", "is listed twice"),
        ("real/apple/x.jpg 3", "wanted one class folder for each label"),
        ("real/Apple/x.jpg 4", "wanted one class folder for each label"),
        ("real/kite/x.jpg 6", r"\(6, 'kite'\).*and the labels 0, 1, 2"),
    ],
)
def test_wrong_lines_are_refused(domainnet, line, message):
    with (domainnet / "real_train.txt").open("a") as handle:
        handle.write(line + "\n")
    with pytest.raises(ValueError, match=message):
        list_images(domainnet)


def test_every_domain_needs_both_lists(domainnet):
    (domainnet / "sketch_test.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"sketch_test\.txt"):
        list_images(domainnet)


def test_lists_of_one_domain_only(domainnet):
    for domain in DOMAINS[1:]:
        for role in ("train", "test"):
            (domainnet / f"{domain}_{role}.txt").unlink()
    with pytest.raises(ValueError, match="one domain only, 'clipart'"):
        list_images(domainnet)
