"""Studies on a Dask cluster: the same records, also when a worker is killed."""

import os
import signal
import threading
import time

import pytest

from softnum.train import load_design, plan_study, read_study
from softnum.train.runs.lock import FileLock
from softnum.train.runs.loop import record_versions
from softnum.train.studies import cluster
from softnum.train.studies.ledger import Ledger
from tests.support.study_cases import conduct, records, until, write_study

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
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as made,
    ):
        yield made.scheduler_address


@pytest.fixture
def study(tmp_path):
    """Two designs, one with a file in Python, and two seeds, with their serial records."""
    file = write_study(tmp_path, ["c-wang-fp8", "h-posit8"], epochs=3)
    conduct(file, tmp_path / "serial", inline=True)
    return file


@pytest.mark.slow
def test_records_are_those_of_a_serial_run(study, address, tmp_path):
    outcome = conduct(study, tmp_path / "out", scheduler=address)
    assert outcome.complete and outcome.trained == 4
    assert records(tmp_path / "out") == records(tmp_path / "serial")
    assert sorted(Ledger(tmp_path / "out").completions().values()) == [1] * 4


@pytest.mark.slow
def test_a_worker_killed_in_the_middle(address, scratch, tmp_path):
    file = write_study(tmp_path, ["c-wang-fp8", "g-q44-stochastic"], epochs=8)
    conduct(file, tmp_path / "serial", inline=True)
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
    rows = Ledger(tmp_path / "out").rows()
    assert [(row["event"], row["attempt"]) for row in rows] == [("finished", 1)] * 4
    assert len({row["key"] for row in rows}) == 4  # each finished exactly once
    assert not list(scratch.rglob("*.jsonl"))  # what workers left is removed once the study has it


def test_workers_that_differ_are_refused(address, tmp_path, monkeypatch):
    file = write_study(tmp_path, ["a-float32"])
    monkeypatch.setattr(cluster, "record_versions", lambda: {**record_versions(), "softnum": "9.9"})
    with pytest.raises(ValueError, match=r"the worker tcp://.* has softnum .* \(here 9.9\): its records would not"):
        conduct(file, tmp_path / "out", scheduler=address)
    assert not records(tmp_path / "out")


def test_workers_without_the_device_are_refused(address, tmp_path, monkeypatch):
    file = write_study(tmp_path, ["a-float32"])
    with pytest.raises(ValueError, match="device must be one of cpu, cuda, got 'tpu'"):
        conduct(file, tmp_path / "out", scheduler=address, device="tpu")
    assert cluster._lacking("cpu") is None
    monkeypatch.setattr(cluster, "_lacking", lambda device: f"device {device!r}: no GPU")
    with pytest.raises(ValueError, match=r"the worker tcp://.*: device 'cuda': no GPU"):
        conduct(file, tmp_path / "out", scheduler=address, device="cuda")
    assert not records(tmp_path / "out")


def test_a_design_that_other_machines_cannot_have(address, tmp_path):
    (tmp_path / "posit8.py").write_bytes((load_design("h-posit8").path.parent / "posit8.py").read_bytes())
    text = load_design("h-posit8").path.read_text()
    (tmp_path / "mine.toml").write_text(text.replace("posit8.py", f"{tmp_path}/posit8.py").replace("h-posit8", "mine"))
    with pytest.raises(ValueError, match="by an absolute path, which other machines do not have"):
        conduct(write_study(tmp_path, ["mine.toml"]), tmp_path / "out", scheduler=address)


def test_files_beside_and_above_a_design_travel(address, tmp_path):
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "posit8.py").write_bytes((load_design("h-posit8").path.parent / "posit8.py").read_bytes())
    text = load_design("h-posit8").path.read_text()
    (tmp_path / "designs").mkdir()
    mine = tmp_path / "designs" / "mine.toml"
    mine.write_text(text.replace("posit8.py", "../shared/posit8.py").replace('name = "h-posit8"', 'name = "mine"'))
    file = write_study(tmp_path, ["designs/mine.toml"], seeds="1")
    assert conduct(file, tmp_path / "out", scheduler=address).complete
    conduct(file, tmp_path / "serial", inline=True)
    assert records(tmp_path / "out") == records(tmp_path / "serial")


def test_runs_of_an_interrupted_study_stop_on_the_workers(address, scratch, tmp_path):
    file = write_study(tmp_path, ["c-wang-fp8"], seeds="[7]", epochs=1000)
    (run,) = plan_study(read_study(file), tmp_path / "out").runs
    executor = cluster.DaskExecutor(address)
    executor.submit(run.task)
    (record,) = until(lambda: list(scratch.rglob(f"{run.task.key}/*.jsonl")))
    executor.close(kill=True)

    def stopped():
        before = record.stat().st_size
        time.sleep(0.3)
        return record.stat().st_size == before

    until(stopped)
    assert record.read_bytes().count(b"\n") < run.iterations
    with distributed.Client(address, set_as_default=False) as client:
        assert not any(client.processing().values())
    lock = FileLock(record.parent / f".seed-{run.seed}.lock", "the record")
    lock.acquire()  # else the worker would still hold it
    lock.release()


def test_no_cluster(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "_SECONDS", 0.5)
    with pytest.raises(ValueError, match="no Dask scheduler answers at 'tcp://127.0.0.1:9'.* `dask scheduler`"):
        cluster.DaskExecutor("tcp://127.0.0.1:9")
    with (
        distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as empty,
        pytest.raises(ValueError, match=r"has no workers; start some with `dask worker "),
    ):
        cluster.DaskExecutor(empty.scheduler_address)


@pytest.mark.slow
def test_runs_in_threads_of_one_worker(tmp_path):
    """A worker with several threads trains several runs at once."""
    file = write_study(tmp_path, ["c-wang-fp8", "g-q44-stochastic", "h-posit8"], epochs=4)
    with distributed.LocalCluster(n_workers=1, threads_per_worker=3, processes=True, dashboard_address=":0") as made:
        assert conduct(file, tmp_path / "out", scheduler=made.scheduler_address).complete
    conduct(file, tmp_path / "serial", inline=True)
    assert records(tmp_path / "out") == records(tmp_path / "serial")
