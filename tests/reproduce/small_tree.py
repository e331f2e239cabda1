"""A protocol for a small tree of images, and the command that runs it."""

DOMAINS = ("sketch", "cartoon", "painting", "photo")
N_PER_CLASS = 12
TINY = "python:tiny_networks:tiny"
PROTOCOL = f"""
name = "small"
title = "A small tree"
order = "from drawn to photographed"

[data]
kind = "archive"
path = "nowhere.safetensors"
{{train_path}}

[roles]
domains = {list(DOMAINS)}
source = 1
calibration = 2
target = 1

[division]
small = 0.4

[classifiers.head]
kind = "logistic"

[methods]
names = ["uncalibrated", "source-only", "target-only", "set-level"]
clusters = 2

[evaluation]
size = 5
draws = 20
bootstrap = 20
"""
TRAINING = ("--finetune", "--epochs", 1, "--batch-size", 4, "--size", 34)


def reproduce(run, protocol, tree, folder, *more):
    return run(
        *("reproduce", protocol, "--images", tree, "--folder", folder),
        *("--backbone", TINY, "--jobs", 1, *more),
    )


def copy_tree(tree, root, names, *, lists):
    """The domains of the tree under other names, with DomainNet's lists if wanted."""
    root.mkdir()
    for number, name in enumerate(names):
        (root / name).symlink_to(tree / DOMAINS[number % len(DOMAINS)])
        roles = {"train": range(4), "test": range(4, N_PER_CLASS)} if lists else {}
        for role, images in roles.items():
            lines = [
                f"{name}/{class_name}/{i}.png {label}\n"
                for label, class_name in enumerate(("dark", "light å"))
                for i in images
            ]
            (root / f"{name}_{role}.txt").write_text("".join(lines), encoding="utf-8")
