"""Files of a run that were damaged, planted or put in its way: a run begins anew, or refuses; nothing else changes."""

import io
import os
import zipfile

import numpy as np
import pytest

from softnum.train.runs.lock import FileLock
from softnum.train.runs.record import RunFiles

HEADER = {"config": {"metric": "accuracy"}, "seed": 1, "versions": {}}


@pytest.fixture
def files(tmp_path):
    made = RunFiles(tmp_path, 1, HEADER, 5)
    made.open()
    made.start(None)
    made.row({"iteration": 1, "epoch": 1, "loss": 1.0})
    made.save({"epoch": 1, "weights": np.arange(50.0)})
    yield made
    made.close()


def test_a_damaged_checkpoint_is_none(files):
    """Whatever bytes are changed: it is not read, or read as it was."""
    whole = files.checkpoint_path.read_bytes()
    assert files.load()["weights"][49] == 49
    rng = np.random.default_rng(0)
    places = [*range(0, len(whole), 37), *range(len(whole) - 120, len(whole))]
    for at in places:
        for value in rng.integers(0, 256, 3):
            files.checkpoint_path.write_bytes(whole[:at] + bytes([value]) + whole[at + 1 :])
            found = files.load()
            assert found is None or (found["weights"] == np.arange(50.0)).all()
    for end in range(0, len(whole), 61):
        files.checkpoint_path.write_bytes(whole[:end])
        assert files.load() is None


def test_a_checkpoint_that_grows_or_lacks_something_is_none(files):
    buffer = io.BytesIO()
    np.savez_compressed(buffer, zeros=np.zeros(10**7))
    files.checkpoint_path.write_bytes(buffer.getvalue())
    assert files.load() is None
    for state in ({}, {"record_bytes": "x"}, {"record_bytes": np.arange(3)}, {"record_bytes": 40}):
        np.savez(files.checkpoint_path, **state)
        assert files.load() is None
    with zipfile.ZipFile(files.checkpoint_path, "w") as archive:
        archive.writestr("record_bytes.npy", b"\x93NUMPY")
    assert files.load() is None
    np.savez(files.checkpoint_path, record_bytes=np.array([{}], object), allow_pickle=True)
    assert files.load() is None


@pytest.mark.skipif(os.name != "posix", reason="POSIX links")
def test_links_in_the_way_lead_nowhere(tmp_path):
    """A link that somebody else put where a lock or a temporary file will be: what it leads to is not touched."""
    target = tmp_path / "precious"
    (tmp_path / ".seed-1.lock").symlink_to(target)
    with pytest.raises(OSError, match="lock"):
        FileLock(tmp_path / ".seed-1.lock", "it").acquire()
    assert not target.exists()
    target.write_text("precious")
    (tmp_path / ".seed-1.jsonl.01234567.tmp").symlink_to(target)
    (tmp_path / ".seed-1.lock").unlink()
    files = RunFiles(tmp_path, 1, HEADER, 5)
    files.open()
    files.start(None)
    files.close()
    assert target.read_text() == "precious"
