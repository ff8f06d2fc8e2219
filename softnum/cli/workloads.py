"""How commands take a workload: a network that softnum trains, one that is only timed, or a file."""

import dataclasses
import tomllib

__all__ = ["WORKLOAD_HELP", "workloads_of"]

WORKLOAD_HELP = (
    "A network that softnum trains (mlp, lenet5, resnet, ...) or only times (resnet50, bert-base, ...), or a .json "
    "file with workloads, like the workloads.json of softnum tta."
)


def workloads_of(network, designs, batches, *, options=None, data=None, updates=None):
    """Workloads of a network under designs at batch sizes, or those of a file.

    Parameters
    ----------
    network : str
        A trained network, one of `softnum.tta.architecture_names`, or a file whose name ends in .json.
    designs : list of str
        Design files or names, by default a-float32; of a network that is only timed, or a precision like
        mixed-float16; none of a file.
    batches : list of int
    options : dict, optional
        The network's own parameters.
    data : str, optional
        Its data set.
    updates : dict, optional
        Keywords of `softnum.train.Settings` that say how it is updated. Default: SGD.

    Returns
    -------
    list of (Workload, Hardware or None)
        With the hardware that the design states, if any.

    Raises
    ------
    ValueError
        If there is no such network, design or file.
    """
    from softnum.tta import architecture_names, read_workloads

    if network.endswith(".json"):
        if designs or options or data:
            raise ValueError(f"{network} says its designs and batches itself; leave the other options out")
        return [(work, None) for work in read_workloads(network)]
    if network in architecture_names():
        if options or data:
            raise ValueError(f"{network} is only timed: it takes no data set, and has no options of its own")
        return _timed(network, designs or ["a-float32"], batches, (updates or {}).get("optimiser", "sgd"))
    from softnum.train import Settings, load_design, make_network, workload
    from softnum.train.nets import NETWORKS

    if network not in NETWORKS:
        _unknown(network, [*NETWORKS, *architecture_names()])
    model = make_network(network, data=data, **(options or {}))
    settings = Settings(network=network, network_options=options or {}, data=data, **(updates or {}))
    found = []
    for name in designs or ["a-float32"]:
        design = load_design(name)
        design.check_layers(model.layer_names)
        design.check_operators(model.operators)
        found += [(workload(settings, design, batch), _hardware(design)) for batch in batches]
    return found


def _unknown(network, known):
    import difflib

    near = difflib.get_close_matches(network, known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise ValueError(f"no network is called {network!r}{hint} (networks: {', '.join(known)}; or a .json file)")


def _hardware(design):
    from softnum.tta import Hardware

    return Hardware.from_table(design.hardware, f"{design.path}: [hardware]") if design.hardware else None


def _own_bits(design):
    """Bits of the formats that only the design's own files know, by name."""
    roles = [*design.roles.values(), *(role for _, own, *_ in design.layers for role in own.values())]
    return {
        role.source.rpartition(":")[2]: role.format.bits for role in roles if ":" in getattr(role, "source", "")
    }  # fmt: skip


def _timed(network, designs, batches, optimiser):
    """Workloads of a network that is only timed."""
    from softnum.train import load_design
    from softnum.tta import Precision, architecture, lower
    from softnum.tta.architectures import PRECISIONS

    layers, found = architecture(network), []
    for name in designs:
        hardware = None
        if name in PRECISIONS:
            precision = Precision.named(name)
        else:
            design = load_design(name)
            bits = _own_bits(design)
            precision = Precision.of_design(tomllib.loads(design.path.read_text(encoding="utf-8")), bits)
            precision, hardware = dataclasses.replace(precision, name=design.name), _hardware(design)
        found += [(lower(layers, batch, precision, optimiser), hardware) for batch in batches]
    return found
