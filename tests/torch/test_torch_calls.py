"""What a call leaves behind, and the memory that arrays and tensors share."""

import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

import softnum.torch as st  # noqa: E402
from softnum.runtime import _core  # noqa: E402
from softnum.torch.numerics import arithmetic_of  # noqa: E402
from softnum.torch.tensors import array_of, tensor_of  # noqa: E402

LEFT = """
import gc, sys, torch, softnum.torch as st
from torch import nn
for design in ("a-float32", "d-e6m3-long", "i-mxfp8"):
    model = st.convert(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), design, quiet=True)
    x = torch.ones(3, 4)
    model(x).sum().backward()  # makes what stays
    model.zero_grad(set_to_none=True)
    gc.collect()
    gc.disable()
    model(x).sum().backward()
    print(gc.collect())
    gc.enable()
"""


def test_calls_leave_nothing_to_the_garbage_collector():
    """In a process of its own: what other tests left may go at any time."""
    done = subprocess.run([sys.executable, "-c", LEFT], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0"] * 3


def test_a_recurrent_layer_keeps_nothing_of_its_calls():
    model = st.convert(nn.LSTM(3, 3).double(), "d-e6m3-long", quiet=True, elementwise="torch")
    x, backends = torch.ones(2, 2, 3).double(), arithmetic_of(model.softnum_mode.arithmetic.handle)._backends

    def kept():
        model(x)
        return [len(backend._rounders) for backend in backends.values()]

    first = kept()
    assert backends and kept() == kept() == first


def test_keys_are_made_where_something_is_random():
    state = st.convert(nn.Linear(2, 2), "a-float32", quiet=True).softnum_state
    plain, random = (st.Arithmetic(name).call("fc", state, 0) for name in ("a-float32", "g-q44-stochastic"))
    assert plain._key("weights") is None
    assert plain._key("dropout") == random._key("dropout")
    assert random._key("weights") != random._key("weights")


@pytest.mark.parametrize(
    "view", (lambda x: x, lambda x: x.T, lambda x: x[1:, ::2], lambda x: x[0, 0], lambda x: x.expand(2, 3, 4))
)
def test_arrays_share_the_memory_of_tensors(view):
    x = view(torch.arange(12, dtype=torch.float32).reshape(3, 4))
    array = array_of(x)
    assert array.shape == x.shape and array.tolist() == x.tolist() and array.flags.writeable
    x.select(0, 0).fill_(-1) if x.dim() and 0 not in x.stride() else None
    assert array.tolist() == x.tolist()


def test_arrays_keep_the_memory_of_tensors():
    x = torch.arange(1000, dtype=torch.float32)
    array = array_of(x)
    x.data = torch.zeros(1000)
    del x
    torch.full((1000,), 7.0)
    assert array.tolist() == list(range(1000))


def test_tensors_share_no_memory_with_operands():
    x = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    array = array_of(x)
    for result in (array, array[:1], array.T):
        tensor = tensor_of(result, torch.float32, x.device, (array,))
        tensor.add_(1)
    assert x.flatten().tolist() == list(range(6))
    own = np.ones(3, np.float32)
    assert tensor_of(own.reshape(3, 1), torch.float32, x.device, (array,)).data_ptr() == own.ctypes.data
    assert tensor_of(own, torch.float32, x.device, (own[1:],)).data_ptr() != own.ctypes.data


def test_who_owns_memory_alone():
    own = np.ones(4, np.float32)
    foreign = array_of(torch.ones(4))
    assert _core.owns_alone(own[1:], (foreign, foreign[1:])) and not _core.owns_alone(own[1:], (own[:1],))
    assert not _core.owns_alone(foreign, ())
