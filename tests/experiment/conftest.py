"""Fixtures of the small world."""

from pathlib import Path

import pytest
from small_world import DOMAINS, make_archive, protocol_content

from command_line import run as command  # noqa: F401
from coolhead.lab.protocol import Protocol


@pytest.fixture
def world(tmp_path) -> Path:
    """Archives of four classifiers."""
    folder = tmp_path / "archives"
    folder.mkdir()
    for number, name in enumerate(DOMAINS):
        path = folder / f"source={name}.safetensors"
        make_archive(random_state=number).save(path)
    return folder


@pytest.fixture
def small_protocol(world) -> Protocol:
    return Protocol.model_validate(protocol_content(world))
