"""A record is the same whatever the processor's instruction set, and on any number of threads."""

import pytest

from softnum.train import Settings, load_design, run
from tests.support.train_cases import MIXED

NETWORKS = {
    "mlp": {"sizes": (64, 24, 10)},
    "lenet5": {"sizes": (3, 4, 8, 12)},
    "resnet": {"sizes": (3, 4, 5)},
    "lstm": {"sizes": (8, 12, 10)},
    "transformer": {"sizes": (8, 12), "depth": 1},
    "wgan": {"sizes": (4, 8), "critic_updates": 1},
}


@pytest.fixture(scope="module")
def first_record(tmp_path_factory):
    """The record of a network on one thread: made once, by the instruction set that is tested first."""
    folder, found = tmp_path_factory.mktemp("records"), {}

    def record(network):
        if network not in found:
            found[network] = _record(folder, network)
        return found[network]

    return record


def _record(folder, network, threads=1):
    (folder / "mixed.toml").write_text(MIXED)
    settings = Settings(network=network, network_options=NETWORKS[network], batch=48, samples=96, held_out=16, epochs=1)
    design = load_design(folder / "mixed.toml")
    return run(design, settings, seed=1, out=folder / f"{network}-{threads}", threads=threads).read_bytes()


@pytest.mark.parametrize("network", NETWORKS)
def test_records_do_not_depend_on_the_instruction_set(network, first_record, isa, tmp_path):
    before = first_record(network)
    assert _record(tmp_path, network) == before


@pytest.mark.parametrize("network", NETWORKS)
def test_records_do_not_depend_on_threads(network, first_record, tmp_path):
    assert _record(tmp_path, network, threads=3) == first_record(network)
