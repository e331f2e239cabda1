"""A sweep on a Dask cluster: the backend is respected, the bytes are the same."""

import subprocess
import sys

import pytest
from small_world import protocol_content, write_toml
from test_sweep import contents

from coolhead.lab.protocol import Protocol
from coolhead.lab.sweep import run_sweep

distributed = pytest.importorskip("distributed")


def test_scheduler_option_gives_the_bytes_of_a_serial_run(world, tmp_path):
    content = protocol_content(world)
    toml = write_toml(tmp_path / "small.toml", content)
    serial = run_sweep(Protocol.model_validate(content), tmp_path / "serial", jobs=1)
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address=":0"
    ) as cluster:
        subprocess.run(
            [
                sys.executable,
                "-c",
                "from coolhead.cli import main; main()",
                "sweep",
                str(toml),
                "--scheduler",
                cluster.scheduler_address,
                "--folder",
                str(tmp_path / "dask"),
            ],
            check=True,
            capture_output=True,
        )
    assert contents(tmp_path / "dask" / "small") == contents(serial.run)
