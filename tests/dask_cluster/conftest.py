"""A real cluster of two worker processes, and rows to put on it."""

import dask
import pytest
from distributed import Client, LocalCluster


@pytest.fixture(scope="session")
def client():
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def one_process():
    """Blocks one after the other in this process: quick, for the many small cases."""
    with dask.config.set(scheduler="synchronous"):
        yield
