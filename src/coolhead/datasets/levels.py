"""Which level of a `domain/class/image` tree a folder is."""

from pathlib import Path

from coolhead.datasets.images import IMAGE_SUFFIXES

DEEPEST = 6


def subfolders(parent: Path) -> list[Path]:
    """Visible folders, links followed, sorted; one that is out of reach is refused."""
    found = sorted(p for p in parent.iterdir() if p.name[0] not in "._")
    for path in found:
        if not path.exists():
            raise ValueError(
                f"{path} is a link to nothing; wanted a folder, or no link"
            )
    folders = [path for path in found if path.is_dir()]
    for path in folders:
        if not path.name.isprintable():
            raise ValueError(
                f"folder {str(path)!r} has a name that can not be printed; wanted UTF-8"
            )
    return folders


def loose_images(folder: Path) -> list[Path]:
    """Image files directly in a folder, sorted."""
    return sorted(
        path
        for path in folder.iterdir()
        if path.name[0] != "." and path.suffix.lower() in IMAGE_SUFFIXES
    )


def wrong_level(root: Path) -> str:
    """What a folder looks like where its images are not three levels down, in words."""
    example = _first_image(root, DEEPEST)
    if example is None:
        return "found no image in it"
    parts = example.relative_to(root).parts
    whole = root.absolute()
    if len(parts) == 1:
        looks, meant = "a class", whole.parent.parent
    elif len(parts) == 2:
        looks, meant = "a domain", whole.parent
    else:
        inside = root.joinpath(*parts[:-3])
        looks, meant = f"{len(parts) - 3} level(s) above the domains", inside
    return f"it looks like {looks} (found {'/'.join(parts)}): did you mean {meant}?"


def _first_image(folder: Path, levels: int) -> Path | None:
    for path in loose_images(folder):
        if path.is_file():
            return path
    inside = subfolders(folder) if levels > 1 else []
    found = (_first_image(path, levels - 1) for path in inside)
    return next((path for path in found if path is not None), None)
