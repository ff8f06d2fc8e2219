"""Files that are written whole or not at all."""

import errno
import os
import signal
import stat
import subprocess
import sys

import pytest

from softnum.runtime import atomic
from softnum.runtime.atomic import atomic_file, write_atomic


def names(folder):
    return sorted(os.listdir(folder))


def test_a_file_appears_when_it_is_complete(tmp_path):
    path = tmp_path / "result.bin"
    with atomic_file(path) as file:
        file.write(b"half")
        file.flush()
        assert not path.exists() and len(names(tmp_path)) == 1
        file.write(b" and half")
    assert path.read_bytes() == b"half and half" and names(tmp_path) == ["result.bin"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_the_old_file_stays_where_the_new_one_fails(tmp_path, error):
    path = tmp_path / "result.bin"
    path.write_bytes(b"old")
    with pytest.raises(error), atomic_file(path) as file:
        file.write(b"new")
        raise error
    assert path.read_bytes() == b"old" and names(tmp_path) == ["result.bin"]


def test_a_process_that_is_killed_leaves_the_old_file(tmp_path):
    path = tmp_path / "result.bin"
    path.write_bytes(b"old")
    program = (
        "import os, signal, sys\n"
        "from softnum.runtime.atomic import atomic_file\n"
        "with atomic_file(sys.argv[1]) as file:\n"
        "    file.write(b'new')\n"
        "    file.flush()\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL and path.read_bytes() == b"old"


def steps_of(monkeypatch, folder, write):
    """What reaches the disk, in its order."""
    seen, sync, replace = [], os.fsync, os.replace

    def fsync(descriptor):
        of_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        seen.append("folder" if of_folder else f"{os.fstat(descriptor).st_size} bytes")
        sync(descriptor)

    def rename(source, target):
        assert os.path.dirname(source) == str(folder)
        seen.append("rename")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", rename)
    write()
    return seen


@pytest.mark.parametrize("way", ["atomic_file", "write_atomic"])
def test_content_then_name_then_folder_reach_the_disk(tmp_path, monkeypatch, way):
    def write():
        if way == "write_atomic":
            write_atomic(tmp_path / "a", b"12345")
        else:
            with atomic_file(tmp_path / "a") as file:
                file.write(b"12345")

    assert steps_of(monkeypatch, tmp_path, write) == ["5 bytes", "rename", "folder"]


def test_errors_of_the_disk(tmp_path, monkeypatch):
    """That a file system cannot be asked is no error; that it fails is, and nothing is renamed."""
    path = tmp_path / "a"

    def failing(number):
        def fsync(descriptor):
            raise OSError(number, os.strerror(number))

        return fsync

    monkeypatch.setattr(os, "fsync", failing(errno.EINVAL))
    write_atomic(path, b"old")
    monkeypatch.setattr(os, "fsync", failing(errno.EIO))
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        write_atomic(path, b"new")
    assert path.read_bytes() == b"old" and names(tmp_path) == ["a"]


def test_text_and_folders(tmp_path):
    path = tmp_path / "new" / "folders" / "page.txt"
    write_atomic(path, "einunddreißig\n")
    assert path.read_bytes() == "einunddreißig\n".encode()
    write_atomic(str(path), b"\x00")
    assert path.read_bytes() == b"\x00" and names(path.parent) == ["page.txt"]
    with pytest.raises(FileNotFoundError, match="there is no folder .*absent"), atomic_file(tmp_path / "absent" / "a"):
        pass


def test_permissions_are_those_of_an_ordinary_file(tmp_path):
    old = os.umask(0o027)
    try:
        write_atomic(tmp_path / "a", b"")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


def test_links_lead_to_the_file(tmp_path):
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "file").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "far" / "file")
    write_atomic(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "far" / "file").read_bytes() == b"new"
    assert names(tmp_path / "far") == ["file"]


def test_what_is_no_regular_file_is_written_to(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE)
    write_atomic(pipe, b"through")
    assert reader.communicate(timeout=10)[0] == b"through" and stat.S_ISFIFO(pipe.stat().st_mode)
    with pytest.raises(IsADirectoryError):
        write_atomic(tmp_path, b"")


def test_standard_output_and_a_file_of_its_name(tmp_path, capfdbinary, monkeypatch):
    with atomic_file("-") as file:
        file.write(b"shown")
    assert capfdbinary.readouterr().out == b"shown"
    monkeypatch.chdir(tmp_path)
    write_atomic("-", b"kept")
    assert (tmp_path / "-").read_bytes() == b"kept"


def test_where_folders_are_not_opened(tmp_path, monkeypatch):
    monkeypatch.setattr(atomic.os, "name", "nt")
    monkeypatch.setattr(atomic.os, "open", None)
    atomic._sync_folder(tmp_path)
