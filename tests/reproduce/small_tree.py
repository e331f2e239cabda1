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
