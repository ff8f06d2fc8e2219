"""The cache folder: whose it may be, and that nothing is opened that was not written there."""

import os
import pickle
import subprocess
import sys

import pytest

import softnum as sn
from softnum.formats.custom.compiler import compile_c, preprocess
from softnum.runtime.atomic import write_atomic
from softnum.runtime.caching import cache_folder, sealed, unsealed

pytestmark = pytest.mark.skipif(os.name != "posix", reason="owners and modes are POSIX's")


def test_folders_that_others_can_write_to_are_refused(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("SOFTNUM_CACHE", str(folder))
    assert cache_folder("c") == folder / "c" and folder.stat().st_mode & 0o777 == 0o700
    text = preprocess("#pragma GCC visibility push(default)\nint one(void) { return 1; }")
    compile_c(text)
    for mode in (0o777, 0o770, 0o707, 0o722):
        for each in (folder, folder / "c"):
            each.chmod(mode)
            with pytest.raises(ValueError, match="others can write to the cache folder .*chmod go-w"):
                cache_folder("c")
            with pytest.raises(ValueError, match="others can write"):
                compile_c(text)  # though it lies there, compiled
            each.chmod(0o700)
    folder.chmod(0o755)
    assert compile_c(text).is_file()


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can give a folder away")
def test_folders_of_other_users_are_refused(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("SOFTNUM_CACHE", str(folder))
    cache_folder()
    os.chown(folder, 12345, -1)
    with pytest.raises(ValueError, match="another user's, whose code would run; set SOFTNUM_CACHE"):
        cache_folder()
    os.chown(folder, 0, -1)
    os.chown(tmp_path, 12345, -1)
    with pytest.raises(ValueError, match="others can replace the cache folder"):
        cache_folder()
    os.chown(tmp_path, 0, -1)
    assert cache_folder() == folder


@pytest.mark.parametrize("damage", [lambda b: b"", lambda b: b[:1000], lambda b: b[:2000] + b"\xff" + b[2001:]])
def test_a_damaged_library_is_compiled_anew(tmp_path, monkeypatch, damage):
    """Mapped into the process, it would end it. What its trial left is read, or not, alike."""
    monkeypatch.setenv("SOFTNUM_CACHE", str(tmp_path / "cache"))
    text = preprocess("#pragma GCC visibility push(default)\nint one(void) { return 1; }")
    path = compile_c(text)
    whole, made = path.read_bytes(), path.stat().st_mtime_ns
    assert compile_c(text) == path and path.stat().st_mtime_ns == made
    path.write_bytes(damage(whole))
    assert compile_c(text) == path and path.read_bytes() == whole
    assert list(path.parent.iterdir()) == [path]


def test_what_a_trial_left_may_be_damaged(tmp_path, monkeypatch):
    monkeypatch.setenv("SOFTNUM_CACHE", str(tmp_path / "cache"))
    source = "typedef unsigned char n; float as_float(n a) { return a; } "
    source += "n convert(float x) { return x > 0 && x < 255 ? x : 0; }"
    fmt = sn.CustomFormat.from_c(source, "n")
    (passed,) = (tmp_path / "cache" / "c").glob("*.passed")
    for content in (b"", b"\xff\xfe", passed.read_bytes()[:10]):
        passed.write_bytes(content)
        assert sn.CustomFormat.from_c(source, "n") == fmt


def test_two_processes_write_one_file(tmp_path, monkeypatch):
    """It is one content or the other, whole; a link in the place of a temporary file leads nowhere."""
    code = "import sys; from softnum.runtime.atomic import write_atomic\n"
    code += "for i in range(60): write_atomic('f', sys.argv[1] * 100_000)"
    processes = [subprocess.Popen([sys.executable, "-c", code, letter], cwd=tmp_path) for letter in "ab"]
    seen = set()
    while any(process.poll() is None for process in processes):
        if (tmp_path / "f").exists():
            seen.add((tmp_path / "f").read_bytes())
    assert seen <= {b"a" * 100_000, b"b" * 100_000} and not any(process.returncode for process in processes)
    assert [path.name for path in tmp_path.iterdir()] == ["f"]
    monkeypatch.setattr(os, "urandom", lambda n: b"\0" * n)
    (tmp_path / ".g.00000000.tmp").symlink_to("f")
    with pytest.raises(FileExistsError, match=r"\.g\.00000000\.tmp"):
        write_atomic(tmp_path / "g", "other")
    assert (tmp_path / "f").stat().st_size == 100_000 and not (tmp_path / "g").exists()


def test_processes_wait_for_each_other(tmp_path):
    code = "import time; from softnum.runtime.atomic import one_at_a_time\nwith one_at_a_time('.lock'):\n"
    code += "    print('in', flush=True); time.sleep(0.1); print('out', flush=True)"
    with open(tmp_path / "said", "ab") as said:
        for process in [subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, stdout=said) for _ in range(3)]:
            assert process.wait(60) == 0
    assert (tmp_path / "said").read_text() == "in\nout\n" * 3


def test_a_folder_that_others_can_replace_is_refused(tmp_path, monkeypatch):
    above = tmp_path / "above"
    above.mkdir()
    monkeypatch.setenv("SOFTNUM_CACHE", str(above / "cache"))
    cache_folder()
    above.chmod(0o777)
    with pytest.raises(ValueError, match="others can replace the cache folder .*above"):
        cache_folder()
    above.chmod(0o1777)  # as /tmp: only its owner can rename what is there
    cache_folder()
    (tmp_path / "link").symlink_to(above / "cache")
    above.chmod(0o777)
    monkeypatch.setenv("SOFTNUM_CACHE", str(tmp_path / "link"))
    with pytest.raises(ValueError, match="others can replace"):
        cache_folder()


def test_seals(tmp_path):
    path = tmp_path / "one"
    path.write_bytes(sealed(path, b"content"))
    assert unsealed(path) == b"content"
    whole = path.read_bytes()
    for i in range(0, len(whole), 5):
        path.write_bytes(whole[:i] + bytes([whole[i] ^ 1]) + whole[i + 1 :])
        assert unsealed(path) is None
        path.write_bytes(whole[:i])
        assert unsealed(path) is None
    path.write_bytes(whole)
    assert unsealed(tmp_path / "none") is None
    key = tmp_path / "key"
    assert key.stat().st_mode & 0o777 == 0o600
    key.chmod(0o644)
    assert unsealed(path) is None
    key.chmod(0o600)
    assert unsealed(path) == b"content"
    key.write_bytes(b"short")
    assert unsealed(path) is None
    key.unlink()
    key.symlink_to("/dev/zero")
    assert unsealed(path) is None
    key.unlink()
    assert unsealed(path) is None  # by a new key
    assert sorted(p.name for p in tmp_path.iterdir()) == ["key", "one"]


class _Planted:
    def __reduce__(self):
        return os.mkdir, (self.path,)


def test_nothing_planted_is_unpickled(tmp_path):
    """Compiled functions are found by another process; what another hand puts into their place is compiled anew."""
    program = tmp_path / "program.py"
    program.write_text(
        "import numpy as np, softnum as sn, softnum.kernels\n"
        "s = softnum.kernels.scalar('binary32')\n"
        "def mad(acc, a, b):\n"
        "    return s.fma(a, b, acc)\n"
        "unit = sn.CustomMadUnit(mad, operand='binary32', accumulator='binary32')\n"
        "print(sn.matmul(np.ones((2, 3), np.float32), np.ones((3, 2), np.float32), unit).sum())\n"
    )
    environment = os.environ | {"SOFTNUM_CACHE": str(tmp_path / "cache")}

    def answer() -> str:
        done = subprocess.run([sys.executable, program], env=environment, capture_output=True, text=True)
        assert not done.returncode, done.stderr
        return done.stdout

    want = answer()
    files = sorted((tmp_path / "cache" / "numba").glob("*.code"))
    assert files and want == "12.0\n"
    kept = [file.read_bytes() for file in files]
    planted = _Planted()
    planted.path = str(tmp_path / "planted")
    for file in files:
        file.write_bytes(pickle.dumps(planted))
    assert answer() == want and not (tmp_path / "planted").exists()
    assert all(len(file.read_bytes()) > 1000 for file in files)  # kept anew
    for file, content in zip(files, kept, strict=True):
        file.write_bytes(content[:-100])
    assert answer() == want
