"""Where runs are carried out on a Dask cluster: the same records, on machines that share no file system.

A worker gets the run with the files of its design, trains in a scratch folder of its machine and returns the record,
which the client writes. The scratch folder is named by the run's key and stays until the study has the record: a worker
that takes the place of one that died on that machine goes on from its checkpoint.
"""

from __future__ import annotations

import dataclasses
import getpass
import os
import shutil
import tempfile
import uuid
from pathlib import Path

from softnum.runtime.atomic import write_atomic
from softnum.train.designs.objects import file_of
from softnum.train.designs.reader import load_design
from softnum.train.engine.devices import check_device
from softnum.train.runs.loop import record_versions
from softnum.train.studies.source import source_digest
from softnum.train.studies.task import Failed, Finished, RunTask, perform

__all__ = ["DaskExecutor"]

_SECONDS = 30  # to connect, and until there is a worker


class DaskExecutor:
    """Carries runs out on the workers of a Dask scheduler.

    Parameters
    ----------
    address : str
        Of the scheduler: "tcp://10.0.0.1:8786".
    device : str
        Where the runs are to compute, as of `softnum.train.run`.

    Raises
    ------
    ValueError
        If Dask is not installed, no scheduler answers, it has no workers, one of them lacks the device, or they have
        other versions than this process: records would not have the same bytes.
    """

    #: The scheduler takes all of them, and gives them to workers that join later.
    free = True

    def __init__(self, address: str, device: str = "cpu") -> None:
        try:
            from distributed import Client
        except ImportError as error:
            raise ValueError("--scheduler takes Dask, which is not installed: pip install 'softnum[dask]'") from error
        self.address, self._futures, self._keys = address, {}, []
        try:
            self._client = Client(address, timeout=_SECONDS, set_as_default=False)
        except (OSError, ValueError) as error:
            raise ValueError(
                f"no Dask scheduler answers at {address!r} ({' '.join(str(error).split())}); start one with "
                "`dask scheduler`, and workers with `dask worker ADDRESS --nthreads 1`"
            ) from error
        try:
            self._check_workers(device)
        except BaseException:
            self._client.close()
            raise

    def _check_workers(self, device: str) -> None:
        try:
            self._client.wait_for_workers(1, timeout=_SECONDS)
        except TimeoutError as error:
            raise ValueError(
                f"the Dask scheduler at {self.address!r} has no workers; start some with "
                f"`dask worker {self.address} --nthreads 1`"
            ) from error
        try:
            workers = self._client.run(_facts)
        except Exception as error:  # whatever keeps a worker from importing softnum
            raise ValueError(
                f"the workers of {self.address!r} cannot run softnum ({type(error).__name__}: {error}); install what "
                "is installed here on all of them"
            ) from error
        here = _facts()
        for worker, there in sorted(workers.items()):
            differ = [f"{name} {there.get(name)} (here {here[name]})" for name in here if there.get(name) != here[name]]
            if differ:
                raise ValueError(
                    f"the worker {worker} has {', '.join(differ)}: its records would not have the same bytes; install "
                    "what is installed here on all of them"
                )
        for worker, lacking in sorted(self._client.run(_lacking, device).items()):
            if lacking is not None:
                raise ValueError(f"the worker {worker}: {lacking}")

    def submit(self, task: RunTask) -> None:
        """Take a run."""
        future = self._client.submit(
            _work, task, _packed(task.design), _packed_model(task.settings.network), key=f"softnum-{uuid.uuid4().hex}",
            pure=False, retries=0,
        )  # fmt: skip
        self._futures[future] = task
        self._keys.append(task.key)

    def wait(self) -> tuple[RunTask, Finished | Failed]:
        """The next run that ended, and how.

        Raises
        ------
        ConnectionError
            If the scheduler has gone.
        """
        from distributed import CancelledError, wait

        try:
            with self._client.as_current():
                wait(list(self._futures), return_when="FIRST_COMPLETED")
        except CancelledError as error:  # nobody but a scheduler that goes cancels them
            raise self._gone() from error
        future = next(future for future in self._futures if future.status != "pending")
        task = self._futures.pop(future)
        if future.status == "finished":
            return task, future.result()
        if future.status in ("cancelled", "lost"):
            raise self._gone()
        return task, Failed(f"its workers died: {' '.join(str(future.exception()).split())}")

    def _gone(self) -> Exception:
        return ConnectionError(
            f"the Dask scheduler at {self.address} has gone; what is finished is kept, the same command goes on from "
            "there"
        )

    def close(self, *, kill: bool = False) -> None:
        """Leave the cluster; kill: runs that are at work stop at their next iteration."""
        if self._client.status == "running":
            self._client.cancel(list(self._futures))
            if not kill:
                self._client.run(_discard, self._keys, on_error="ignore")
        self._futures = {}
        self._client.close()


def _packed(design: str) -> dict[str, bytes]:
    """The files of a design, by their paths relative to the folder that holds all of them; the design's is first."""
    loaded = load_design(design)
    files = [loaded.path.absolute(), *(file.absolute() for file in loaded.files)]
    for text in loaded.sources:
        if os.path.isabs(text.rpartition(":")[0] or text):
            raise ValueError(
                f"{loaded.path}: names {text!r} by an absolute path, which other machines do not have; name it "
                "relative to the design"
            )
    paths = [os.path.normpath(file) for file in files]
    common = os.path.commonpath([os.path.dirname(path) for path in paths])
    return {Path(os.path.relpath(path, common)).as_posix(): Path(path).read_bytes() for path in paths}


def _packed_model(network: str) -> bytes | None:
    """The Python file of a model of the user's own; files that it imports or reads are to be on all machines."""
    file = file_of(network, Path())
    return None if file is None else file.read_bytes()


# -- on the workers ----------------------------------------------------------------------------------------------------
class Abandoned(Exception):
    """Nobody waits for the run any more: its study was interrupted."""


def _lacking(device: str) -> str | None:
    """What keeps a worker from a device."""
    try:
        check_device(device)
    except ValueError as error:
        return str(error)
    return None


def _work(task: RunTask, files: dict[str, bytes], model: bytes | None = None) -> Finished | Failed:
    """Carry a run out on a worker."""
    from distributed import get_worker

    worker = get_worker()
    key = worker.get_current_task()

    def check() -> None:
        state = worker.state.tasks.get(key)
        if state is None or state.state == "cancelled":
            raise Abandoned

    try:
        folder = _scratch(task.key)
        for name, content in files.items():
            path = folder / "design" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(path, content)
        if model is not None:
            source, _, function = task.settings.network.rpartition(":")
            path = folder / "model" / Path(source).name
            path.parent.mkdir(exist_ok=True)
            write_atomic(path, model)
            settings = dataclasses.replace(task.settings, network=f"{path}:{function}")
            task = dataclasses.replace(task, settings=settings)
        done = perform(task, folder, check, folder / "design" / next(iter(files)))
        return dataclasses.replace(done, record=(folder / f"seed-{task.seed}.jsonl").read_bytes())
    except Abandoned:
        raise
    except Exception as error:  # returned as text, because not every exception can be sent to another process
        return Failed.of(error)


def _scratch(key: str) -> Path:
    """A run's folder on this machine: where Dask puts what is temporary, and this user's alone."""
    import dask

    base = Path(dask.config.get("temporary-directory") or tempfile.gettempdir(), f"softnum-{getpass.getuser()}")
    base.mkdir(mode=0o700, parents=True, exist_ok=True)
    if hasattr(os, "getuid") and base.stat().st_uid != os.getuid():
        raise ValueError(f"{base} belongs to another user; set Dask's temporary-directory to a folder of your own")
    folder = base / key
    folder.mkdir(exist_ok=True)
    return folder


def _discard(keys: list[str]) -> None:
    """Remove what runs left on this machine."""
    for key in keys:
        shutil.rmtree(_scratch(key), ignore_errors=True)


def _facts() -> dict[str, str]:
    """What has to be equal on all machines, for records to have the same bytes."""
    return {**record_versions(), "softnum's source": source_digest()}
