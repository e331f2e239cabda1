"""Trees of images that users bring: right labels, and nothing wrong passes unsaid."""

import numpy as np
import pytest
from PIL import Image

from coolhead.lab.images import list_images, split_large_small


def put_image(path, colour=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (8, 8), (colour, 100, 50)).save(path)


@pytest.fixture
def office_home(tmp_path):
    """Four domains, three classes, of which the first is missing in Art."""
    tmp_path = tmp_path / "OfficeHome"
    for domain in ("Art", "Clipart", "Product", "RealWorld"):
        for name in ("Alarm_Clock", "Bed", "Mop"):
            if (domain, name) != ("Art", "Alarm_Clock"):
                for number in range(5):
                    put_image(tmp_path / domain / name / f"{number:05}.jpg", number)
    (tmp_path / "ImageInfo.csv").write_text("not an image, and not in a class folder")
    (tmp_path / "Art" / "Bed" / ".DS_Store").write_text("hidden")
    return tmp_path


def test_labels_mean_the_same_everywhere(office_home):
    table = list_images(office_home)
    assert table.class_names == ("Alarm_Clock", "Bed", "Mop")
    assert table.domain_names == ("Art", "Clipart", "Product", "Real World")
    assert len(table) == 55
    assert table.problems == ()
    for path, label in zip(table.paths, table.labels, strict=True):
        assert path.split("/")[1] == table.class_names[label]
    art = table.select("Art")
    assert set(art.labels) == {1, 2}
    assert art.class_names == table.class_names
    assert all((table.root / path).is_file() for path in table.paths)


def test_classes_that_a_domain_lacks_are_reported(office_home):
    differences = list_images(office_home).differences
    assert differences == ("Art has no images of Alarm_Clock (0)",)


def test_a_tree_of_ones_own_has_nothing_to_compare_with(tmp_path):
    for domain in ("north", "south"):
        put_image(tmp_path / domain / "cat" / "a.png")
    table = list_images(tmp_path)
    assert table.differences == ()
    assert table.roles is None
    with pytest.raises(ValueError, match="no train and test lists"):
        table.only("test")


@pytest.fixture
def damaged(office_home):
    bed = office_home / "Product" / "Bed"
    (bed / "empty.jpg").touch()
    (bed / "page.jpg").write_text("<html>404</html>")
    (bed / "notes.txt").write_text("no image")
    whole = (bed / "00000.jpg").read_bytes()
    (bed / "cut.jpg").write_bytes(whole[: len(whole) // 2])
    return office_home


def test_bad_files_are_listed_and_refused(damaged):
    with pytest.raises(ValueError, match="unusable files") as caught:
        list_images(damaged)
    message = str(caught.value)
    assert "Product/Bed/empty.jpg: empty file" in message
    assert "Product/Bed/page.jpg: unreadable" in message
    assert "Product/Bed/notes.txt: not an image type" in message
    assert "--skip-bad" in message


def test_bad_files_are_skipped_when_asked(damaged):
    table = list_images(damaged, skip_bad=True, decode=True)
    assert len(table) == 55
    reasons = {p.path.split("/")[-1]: p.reason for p in table.problems}
    assert set(reasons) == {"empty.jpg", "page.jpg", "notes.txt", "cut.jpg"}
    assert reasons["cut.jpg"].startswith("unreadable")


def test_only_decoding_finds_a_body_cut_off(damaged):
    for name in ("empty.jpg", "page.jpg", "notes.txt"):
        (damaged / "Product" / "Bed" / name).unlink()
    with pytest.raises(ValueError, match=r"cut\.jpg"):
        list_images(damaged, decode=True)


def test_empty_folder(tmp_path):
    with pytest.raises(ValueError, match="holds no images as domain/class"):
        list_images(tmp_path)
    with pytest.raises(ValueError, match="is not a folder"):
        list_images(tmp_path / "nowhere")
    for domain in "ab":
        (tmp_path / domain / "cat").mkdir(parents=True)
    with pytest.raises(ValueError, match="holds no images"):
        list_images(tmp_path)


def test_one_domain_alone(tmp_path):
    put_image(tmp_path / "only" / "cat" / "a.jpg")
    with pytest.raises(
        ValueError, match=r"one domain only, 'only'; wanted at least two$"
    ):
        list_images(tmp_path)


def test_a_domain_without_usable_images(tmp_path):
    put_image(tmp_path / "a" / "cat" / "a.jpg")
    (tmp_path / "b" / "cat").mkdir(parents=True)
    (tmp_path / "b" / "cat" / "x.jpg").touch()
    with pytest.raises(ValueError, match="domain 'b' has no usable image"):
        list_images(tmp_path, skip_bad=True)


def test_class_names_that_differ_by_case(office_home):
    put_image(office_home / "Art" / "alarm_clock" / "a.jpg")
    with pytest.raises(
        ValueError, match="'alarm_clock' in Art, 'Alarm_Clock' in Clipart"
    ):
        list_images(office_home)


def test_unknown_domains_get_a_suggestion(office_home):
    with pytest.raises(ValueError, match="did you mean 'Clipart'"):
        list_images(office_home).select("clipart")


def test_a_table_divides_like_an_archive(office_home):
    table = list_images(office_home)
    small = split_large_small(table)
    assert table.rows(small).domain_sizes() == {
        "Art": 2,
        "Clipart": 3,
        "Product": 3,
        "Real World": 3,
    }
    assert not np.isin(table.rows(small).paths, table.rows(~small).paths).any()
