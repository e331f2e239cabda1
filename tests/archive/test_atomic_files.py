"""A file is whole or not there; the old one stays when writing fails."""

import os
import stat

import numpy as np
import pytest

from coolhead.io.archive import DomainArchive
from coolhead.io.files import atomic_path


def test_failure_keeps_the_old_file(tmp_path):
    path = tmp_path / "out.txt"
    path.write_text("old")
    with pytest.raises(OSError, match="disk full"), atomic_path(path) as temporary:
        temporary.write_text("half of the n")
        raise OSError("disk full")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["out.txt"]


def test_success_replaces_it_with_ordinary_permissions(tmp_path):
    path = tmp_path / "out.txt"
    with atomic_path(path) as temporary:
        temporary.write_text("new")
        temporary.chmod(0o600)
        assert not path.exists()
    ordinary = tmp_path / "ordinary"
    ordinary.touch()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(ordinary.stat().st_mode)
    assert path.read_text() == "new"


def test_archives_have_ordinary_permissions(tmp_path):
    DomainArchive(np.eye(3) * 2).save(tmp_path / "a.safetensors")
    (tmp_path / "ordinary").touch()
    modes = {p.stat().st_mode for p in tmp_path.iterdir()}
    assert len(modes) == 1


def test_missing_folder_is_named(tmp_path):
    with (
        pytest.raises(FileNotFoundError, match=r"folder .*nowhere does not exist"),
        atomic_path(tmp_path / "nowhere" / "x"),
    ):
        pass


def test_no_permission_is_said(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with (
        pytest.raises(PermissionError, match="no permission to write in"),
        atomic_path(tmp_path / "x"),
    ):
        pass


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs Linux")
def test_disk_full_while_saving(tmp_path, monkeypatch):
    path = tmp_path / "a.safetensors"
    archive = DomainArchive(np.eye(3) * 2)
    archive.save(path)
    before = path.read_bytes()

    def full(*_, **__):
        with open("/dev/full", "w") as handle:
            handle.write("x" * 100_000)

    monkeypatch.setattr("coolhead.io.safetensors.save_file", full)
    with pytest.raises(OSError, match="No space left"):
        archive.save(path)
    assert path.read_bytes() == before
    assert len(os.listdir(tmp_path)) == 1
