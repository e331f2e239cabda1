"""Networks small enough to fine-tune in a test."""

import time

import torch

from coolhead.lab.images import Backbone, ImageTransform


def tiny(n_classes=None):
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, stride=2),
        torch.nn.BatchNorm2d(8),
        torch.nn.ReLU(),
        torch.nn.AvgPool2d(7),
        torch.nn.Flatten(),
        torch.nn.Dropout(0.2),
        torch.nn.Linear(32, n_classes or 10),
    )
    return Backbone(net, ImageTransform(size=32))


def slow(n_classes=None):
    """Takes 10 ms for every image."""
    network = tiny(n_classes)

    def wait(module, inputs):
        time.sleep(0.01 * len(inputs[0]))

    network.module.register_forward_pre_hook(wait)
    return network
