"""An experiment on the cluster gives the bytes of an experiment at home."""

import pytest

from coolhead.lab.protocol import Protocol
from coolhead.lab.results import table_path
from coolhead.lab.sweep import run_sweep
from experiment.small_world import DOMAINS, make_archive, protocol_content

pytestmark = pytest.mark.xdist_group("dask")


def test_sweep_on_a_scheduler(client, tmp_path):
    for number, domain in enumerate(DOMAINS):
        archive = make_archive(random_state=number)
        archive.save(tmp_path / f"source={domain}.safetensors")
    methods = {"names": ["uncalibrated", "set-level", "nearest-cluster"], "clusters": 3}
    protocol = Protocol(**protocol_content(tmp_path, methods=methods))
    address = client.scheduler.address
    there = run_sweep(protocol, tmp_path / "there", scheduler=address)
    here = run_sweep(protocol, tmp_path / "here", jobs=1)
    assert (there.n_cells, there.n_failed) == (here.n_cells, 0)
    for name in ("results", "reliability"):
        there_bytes = table_path(there.run, name).read_bytes()
        assert there_bytes == table_path(here.run, name).read_bytes()
