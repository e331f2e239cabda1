"""Trees as users have them: what can be used is, and what can not is named at once."""

import os

import numpy as np
import pytest
from PIL import Image, ImageOps
from test_extract import tiny

torch = pytest.importorskip("torch")

from coolhead.lab.images import ImageTransform, extract, list_images
from coolhead.lab.images.transform import read_augmented

PHOTO = "photo/china/0.jpg"


def write(name, content):
    return lambda tree: (tree / name).write_bytes(content)


def link(name, target):
    return lambda tree: (tree / name).symlink_to(target)


def cut_off(tree):
    content = (tree / PHOTO).read_bytes()
    (tree / PHOTO).write_bytes(content[: len(content) // 2])


def pipe(tree):
    os.mkfifo(tree / "photo/china/pipe.jpg")


def class_in_two_encodings(tree):
    """An é of one letter in one domain, of two in the other."""
    (tree / "photo/flower").rename(tree / "photo/caf\u00e9")
    (tree / "sketch/flower").rename(tree / "sketch/cafe\u0301")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (write("photo/china/a.jpg", b""), r"photo/china/a\.jpg: empty file"),
        (write("photo/china/a.jpg", b"<html>"), r"china/a\.jpg: unreadable \(Unid"),
        (write("photo/china/a.txt", b"words"), r"china/a\.txt: not an image type"),
        (cut_off, r"china/0\.jpg: unreadable \(OSError"),
        (write("photo/loose.jpg", b"x"), r"photo/loose\.jpg: lies in no class folder"),
        (write("loose.png", b"x"), r"  loose\.png: lies in no class folder"),
        (pipe, r"china/pipe\.jpg: not a regular file"),
        (class_in_two_encodings, "class names differ by .* encoding"),
        (link("photo/china/a.jpg", "gone.jpg"), r"china/a\.jpg: missing"),
        (link("photo/china/a.jpg", "a.jpg"), r"a\.jpg: unreadable \(OSError"),
        (link("photo/china/up", ".."), "photo/china/up: not an image type"),
        (link("photo/all", "../"), "photo/all/photo: not an image type"),
    ],
)
def test_what_can_not_be_used_is_named_before_the_work(tree, tmp_path, spoil, message):
    spoil(tree)
    with pytest.raises(ValueError, match=message) as caught:
        extract(tree, tiny(), tmp_path / "x")
    str(caught.value).encode()  # can be printed
    assert [path.name for path in tmp_path.iterdir()] == ["images"]


def test_a_class_missing_in_a_domain_is_told(tree):
    for path in (tree / "sketch/flower").iterdir():
        path.unlink()
    (tree / "photo").rename(tree / "north")
    (tree / "docs").mkdir()
    assert list_images(tree).differences == (
        "docs is no domain: it has no class folders",
        "sketch has no images of flower (1)",
    )


def test_names_and_links_that_are_fine(tree, tmp_path):
    plain = extract(tree, tiny(), tmp_path / "a")
    for domain in ("photo", "sketch"):
        (tree / domain / "flower").rename(tree / domain / "Blüte im Mai 花")
    (tree / "sketch").rename(tmp_path / "elsewhere")
    (tree / "sketch").symlink_to(tmp_path / "elsewhere")
    (tree / PHOTO).rename(tmp_path / "one.jpg")
    (tree / PHOTO).symlink_to(tmp_path / "one.jpg")
    (tree / "photo/china/1.jpg").rename(tree / "photo/china/1 é (copy).JPG")
    found = extract(tree, tiny(), tmp_path / "b")
    assert found.class_names == ("Blüte im Mai 花", "china")
    assert "photo/china/1 é (copy).JPG" in found.ids
    order = np.argsort(
        [name.replace("Blüte im Mai 花", "flower") for name in found.ids]
    )
    np.testing.assert_array_equal(found.features[order], plain.features)


def white(mode):
    """Black, grey and white columns; without grey where the mode has none."""
    levels = [[0, 255]] if mode == "1" else [[0, 100, 255, 180]]
    width = 80 // len(levels[0])
    values = np.repeat(levels, width, axis=1).repeat(60, axis=0).astype(np.uint8)
    if mode == "I;16":
        return Image.fromarray(values.astype(np.uint16) * 257)
    return Image.fromarray(values).convert("RGB").convert(mode)


@pytest.mark.parametrize(
    ("mode", "ending", "options"),
    [
        ("CMYK", "jpg", {"quality": 100}),
        ("L", "jpg", {"quality": 100}),
        ("RGBA", "png", {}),
        ("LA", "png", {}),
        ("1", "png", {}),
        ("P", "png", {"transparency": 0}),
        ("P", "png", {"transparency": bytes([0, 128, 255])}),
        ("I;16", "png", {}),
        ("I;16", "tiff", {}),
        ("CMYK", "tiff", {}),
        ("RGB", "gif", {"save_all": True}),
        ("RGB", "webp", {"save_all": True, "lossless": True}),
        ("RGB", "png", {"save_all": True}),
    ],
)
def test_every_kind_of_file_shows_the_same_picture(tmp_path, mode, ending, options):
    path = tmp_path / f"x.{ending}"
    if options.get("save_all"):  # the first picture of a film counts
        options = options | {"append_images": [Image.new("RGB", (80, 60), "red")]}
    white(mode).save(path, **options)
    transform = ImageTransform(32, 1.0, mean=(0, 0, 0), std=(1, 1, 1))
    with Image.open(path) as image:
        assert getattr(image, "n_frames", 1) == 1 + bool(options.get("save_all"))
        found = transform(image)
    few = mode in ("1", "P")  # colours, to which the picture was rounded
    expected = transform(white(mode).convert("RGB") if few else white("RGB"))
    np.testing.assert_allclose(found, expected, atol=0.02)


@pytest.mark.parametrize("ending", ["jpg", "png", "tiff", "webp"])
@pytest.mark.parametrize("orientation", range(1, 10))
def test_pictures_are_turned_as_the_camera_says(
    photographs, tmp_path, orientation, ending
):
    """As Pillow turns them, at every scale of decoding, cropping anywhere."""
    picture = Image.fromarray(photographs["china"][0]).resize((600, 480))
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = tmp_path / f"x.{ending}"
    picture.save(path, exif=exif, quality=95)
    with Image.open(path) as image:
        upright = ImageOps.exif_transpose(image)
    for size in (200, 40):  # decoded in full, and at a quarter
        transform = ImageTransform(size, 0.8, mean=(0, 0, 0), std=(1 / 255,) * 3)
        with Image.open(path) as image:
            difference = transform(image) - transform(upright)
        assert np.sqrt(np.mean(difference**2)) < 1
    read, seeds = read_augmented(np.arange(3)), range(3)
    upright.save(tmp_path / "upright.png")
    for row in seeds:
        found, wanted = (
            read(row, name, transform) for name in (path, tmp_path / "upright.png")
        )
        assert np.sqrt(np.mean((found - wanted) ** 2)) < 1


def test_damaged_notes_of_a_camera_lose_no_picture(photographs, tmp_path):
    path = tmp_path / "x.jpg"
    picture = Image.fromarray(photographs["china"][0])
    picture.save(path, exif=b"Exif\0\0nonsense", quality=95)
    transform = ImageTransform(32)
    with Image.open(path) as image:
        found = transform(image)
    np.testing.assert_allclose(found, transform(picture), atol=0.2)
