"""Many threads ask for the same things at once, in a process that has not computed them before.

Without the GIL (a free-threaded Python, PYTHON_GIL=0) they do so at the same time; with it they are switched often.
"""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import softnum as sn

THREADS = 8
ROUNDS = 24
MODES = ("nearest_even", "up", "down", "to_odd", "toward_zero", "nearest_away")


def jobs(i: int):
    """Calls that need kernels, contexts, tables and units of their own."""
    rng = np.random.default_rng(i)
    x = rng.standard_normal(300).astype(np.float32)
    m = rng.standard_normal((9, 12)).astype(np.float32)
    codes = np.arange(256, dtype=np.uint8)
    a, b = (v.ravel().copy() for v in np.meshgrid(codes, codes))
    name, mode = f"e{3 + i % 5}m{2 + i % 7}", MODES[i % len(MODES)]
    small = ("e5m2", "e4m3fn", "e3m4", "e4m3", "e5m2fnuz")[i // len(MODES) % 5]
    yield lambda: sn.quantize(x, name)
    yield lambda: sn.decode(sn.encode(x, name), name)
    yield lambda: sn.add(sn.encode(x, name), sn.encode(x[::-1].copy(), name), name)
    yield lambda: (sn.array(x, name) * sn.array(x, name)).codes
    yield lambda: sn.quantize(m, "mxfp8_e4m3", axis=0)
    unit = f"e{5 + i % 3}m{8 + i % 5}"
    yield lambda: sn.matmul(sn.quantize(m, "e5m2"), sn.quantize(m.T.copy(), "e5m2"), sn.MadUnit(unit, operand="e5m2"))
    for operation in ("add", "multiply", "divide"):
        yield lambda operation=operation: getattr(sn.ops, operation)(a, b, small, rounding=mode)
    yield lambda: sn.tanh(np.tile(codes, 2), small, rounding=mode)


def at_once(job) -> list[bytes]:
    """What each of the threads gets."""
    gate, got = threading.Barrier(THREADS), [b""] * THREADS

    def work(thread: int) -> None:
        gate.wait()
        try:
            got[thread] = np.asarray(job()).tobytes()
        except Exception as error:  # compared with what one thread gets
            got[thread] = repr(error).encode()

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return got


def main() -> None:
    sys.setswitchinterval(1e-6)
    for i in range(ROUNDS):
        for k, job in enumerate(jobs(i)):
            assert set(at_once(job)) == {np.asarray(job()).tobytes()}, (i, k)


def test_many_threads_ask_for_the_same_at_first():
    done = subprocess.run([sys.executable, "-X", "dev", "-W", "ignore", __file__], capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr.decode()[-3000:]


def test_extensions_leave_the_gil_off():
    """Where there is a Python without it: an extension that did not say that it can do without would turn it on."""
    code = "import sys, sysconfig, softnum.vectors; print(sysconfig.get_config_var('Py_GIL_DISABLED') and 1 or 0, "
    code += "getattr(sys, '_is_gil_enabled', lambda: True)())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout in ("0 True\n", "1 False\n"), done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
def test_a_child_that_is_forked_while_another_thread_adds():
    """The thread that holds the lock is not there in the child, which must not wait for it."""
    code = """if True:
        import os, threading, warnings
        import softnum as sn
        from softnum.runtime import _core
        warnings.simplefilter("ignore")
        held = threading.Event()
        hold = lambda: (_core._adding.acquire(), held.set(), threading.Event().wait())
        threading.Thread(target=hold, daemon=True).start()
        held.wait()
        child = os.fork()
        if child:
            os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        os._exit(0 if sn.add(0x3C, 0x3C, "e5m2") == 0x40 else 1)
    """
    assert subprocess.run([sys.executable, "-c", code], timeout=120, check=False).returncode == 0


if __name__ == "__main__":
    main()
