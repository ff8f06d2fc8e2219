"""Studies on a Dask cluster: the same records, also when a worker is killed."""

import os
import signal
import threading

import pytest
from study_cases import conduct, records, until, write_study

from softnum.train import plan_study, read_study
from softnum.train.studies.ledger import Ledger

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("default")  # Dask's own


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    """Where workers train."""
    return tmp_path_factory.mktemp("scratch")


@pytest.fixture(scope="module")
def address(scratch):
    """A cluster of two worker processes."""
    import dask

    with (
        dask.config.set({"temporary-directory": str(scratch)}),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as made,
    ):
        yield made.scheduler_address


@pytest.fixture
def study(tmp_path):
    """Two designs, one with a file in Python, and two seeds, with their serial records."""
    file = write_study(tmp_path, ["c-wang-fp8", "h-posit8"], epochs=3)
    conduct(file, tmp_path / "serial", jobs=1)
    return file


def test_records_are_those_of_a_serial_run(study, address, tmp_path):
    outcome = conduct(study, tmp_path / "out", scheduler=address)
    assert outcome.complete and outcome.trained == 4
    assert records(tmp_path / "out") == records(tmp_path / "serial")
    assert sorted(Ledger(tmp_path / "out").completions().values()) == [1] * 4


def test_a_worker_killed_in_the_middle(address, scratch, tmp_path):
    file = write_study(tmp_path, ["c-wang-fp8", "g-q44-stochastic"], epochs=20)
    conduct(file, tmp_path / "serial", jobs=2)
    plan, killed = plan_study(read_study(file), tmp_path / "out"), []

    def kill():
        """Kill a worker as it trains a run that has passed a checkpoint."""
        until(lambda: [run for run in plan.runs if list(scratch.rglob(f"{run.task.key}/*.npz"))])
        with distributed.Client(address, set_as_default=False) as client:
            pids = client.run(os.getpid)
            busy = [worker for worker, tasks in client.processing().items() if tasks]
            os.kill(pids[busy[0]], signal.SIGKILL)
            killed.append(pids[busy[0]])

    killer = threading.Thread(target=kill)
    killer.start()
    outcome = conduct(file, tmp_path / "out", scheduler=address)
    killer.join()
    assert killed and outcome.complete and outcome.trained == 4
    assert records(tmp_path / "out") == records(tmp_path / "serial")
    assert sorted(Ledger(tmp_path / "out").completions().values()) == [1] * 4  # each finished exactly once
