"""How commands take a workload: a network that softnum trains, one that it only times, or a file."""

import difflib
import tomllib
from typing import Annotated

import typer

__all__ = ["WORKLOAD_HELP", "Dims", "Sequence", "devices_of", "is_onnx", "ways_of", "workloads_of"]

Sequence = Annotated[
    int | None,
    typer.Option(
        help="Tokens of a sample, for a language model that is only timed; for flux1-dev the patches of an image."
    ),
]

Dims = Annotated[
    list[str] | None,
    typer.Option(
        "--dim", metavar="NAME=SIZE", help="A dynamic dimension of a .onnx file, like steps=128; may be given again."
    ),
]

WORKLOAD_HELP = (
    "A network that softnum trains (mlp, lenet5, resnet, ...), one that it only times (resnet50, llama3-8b, ...), "
    "FILE.py:FUNCTION, a PyTorch model of your own, a .onnx file, or a .json file with workloads, like the "
    "workloads.json of softnum tta."
)


def workloads_of(
    network, designs, batches, *, precisions=(), formats=(), options=None, data=None, updates=None, sequence=None,
    dims=None,
):  # fmt: skip
    """Workloads of a network under designs at batch sizes, or those of a file.

    Parameters
    ----------
    network : str
        A trained network, an architecture, or a file whose name ends in .onnx or .json.
    designs : list of str
        Design files or names; none of a file.
    batches : list of int or None
        Default: 32, or what a file says.
    precisions : list of str
        Of an architecture, presets like "bfloat16" in place of designs.
    formats : list of str
        In place of designs or beside them: every number in one format.
    options : dict, optional
        A trained network's own parameters.
    data : str, optional
        Its data set.
    updates : dict, optional
        Keywords of `softnum.train.Settings` that say how it is updated; of an architecture only ``optimiser``. Default:
        SGD, which of an architecture keeps no momentum.
    sequence : int, optional
        Of an architecture whose samples may have several lengths.
    dims : list of str, optional
        Of a .onnx file, NAME=SIZE.

    Returns
    -------
    list of (Workload, Hardware or None)
        With the hardware that the design states, if any.

    Raises
    ------
    ValueError
        If there is no such network, design, preset or file.
    """
    from softnum.tta import architecture, read_workloads
    from softnum.tta.architectures import architecture_names

    updates = updates or {}
    if is_onnx(network):
        if options or data or sequence:
            raise ValueError(f"{network} is only timed: it has no options, no data set and no --sequence but its --dim")
        return _onnx(network, designs, precisions, formats, batches, updates.get("optimiser", "sgd"), _sizes(dims))
    if dims:
        raise ValueError(f"--dim is of a .onnx file's dynamic dimensions, and {network} is none; leave it out")
    if network.endswith(".json"):
        if designs or precisions or formats or options or data or updates or sequence or batches is not None:
            raise ValueError(
                f"{network} states its own designs and batches; leave out --design, --precision, --format, --batch, "
                "--sequence, --data, --optimiser and the options of networks"
            )
        return [(work, None) for work in read_workloads(network)]
    batches = [32] if batches is None else batches
    if network in architecture_names():
        if options or data:
            raise ValueError(
                f"{network} is a network for timing only: it has no options and no data set; leave them out"
            )
        net = architecture(network, sequence)
        return _architecture(net, designs, precisions, formats, batches, updates.get("optimiser", "sgd"))
    if precisions or sequence:
        option = "--precision" if precisions else "--sequence"
        raise ValueError(f"{option} is for {', '.join(architecture_names())}; {network} is trained under a design")
    return _trained(network, designs, formats, batches, options or {}, data, updates)


def is_onnx(network: str) -> bool:
    """Whether a network is a file of ONNX.

    >>> is_onnx("models/mine.onnx"), is_onnx("mlp")
    (True, False)
    """
    return network.lower().endswith(".onnx")


def _sizes(dims) -> dict[str, int]:
    """Sizes by the names of dimensions, of NAME=SIZE."""
    found: dict[str, int] = {}
    for text in dims or ():
        name, equals, size = (part.strip() for part in text.rpartition("="))
        if not (name and equals and size.isascii() and size.isdigit() and len(size) < 20 and int(size)):
            raise ValueError(f"--dim {text!r} is not NAME=SIZE, like --dim batch=8")
        if found.setdefault(name, int(size)) != int(size):
            raise ValueError(f"--dim {name} is given twice: {found[name]} and {size}; leave one of them out")
    return found


def _onnx(path, designs, precisions, formats, batches, optimiser, dims):
    from softnum.tta import lower
    from softnum.tta.onnx import read_onnx

    ways = ways_of(designs, precisions, formats)
    nets = [read_onnx(path, dims, batch) for batch in batches or [None]]
    return [(lower(net, net.batch, precision, optimiser), hardware) for precision, hardware in ways for net in nets]


def _trained(network, designs, formats, batches, options, data, updates):
    from softnum.train import Settings, load_design, uniform_design, workload
    from softnum.train.nets import NETWORKS
    from softnum.train.runs.own import is_own
    from softnum.tta.architectures import architecture_names

    if network not in NETWORKS and not is_own(network):
        names = (*NETWORKS, *architecture_names())
        near = difflib.get_close_matches(network, names, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        raise ValueError(
            f"unknown network {network!r}{hint} Known: {', '.join(names)}, FILE.py:FUNCTION, a .onnx or a .json file"
        )
    settings = Settings(network=network, network_options=options, data=data, **updates)
    chosen = [load_design(name) for name in designs or ([] if formats else ["a-float32"])]
    found = []
    for design in (*chosen, *map(uniform_design, formats)):
        hardware = _hardware(design)
        found += [(workload(settings, design, batch), hardware) for batch in batches]
    return found


def _architecture(net, designs, precisions, formats, batches, optimiser):
    from softnum.tta import lower

    ways = ways_of(designs, precisions, formats)
    return [(lower(net, batch, precision, optimiser), hardware) for precision, hardware in ways for batch in batches]


def ways_of(designs, precisions, formats):
    """(Precision, Hardware or None) of what is named, else of float32."""
    from softnum.tta.architectures import Precision

    if designs and precisions:
        raise ValueError("--design and --precision both state the formats; leave one of them out")
    ways = [(Precision.named(name), None) for name in precisions or ([] if designs or formats else ["float32"])]
    ways += [(Precision.of_roles(name, {"default": name}), None) for name in formats]
    for name in designs:
        from softnum.train import load_design

        design = load_design(name)
        table = {"name": design.name, **tomllib.loads(design.path.read_text(encoding="utf-8"))}
        ways.append((Precision.of_design(table, _own_bits(design)), _hardware(design)))
    return ways


def devices_of(works, device, device_file=None):
    """Each workload with each device that it is asked on: those of the names, else the design's own array.

    Parameters
    ----------
    works : list of (Workload, Hardware or None)
    device : str, optional
        Names, with commas between.
    device_file : path-like, optional
        TOML with devices of the user's own.

    Returns
    -------
    list of (Workload, Device)

    Raises
    ------
    ValueError
        If a design states no hardware and no device is named, or there is none of a name.
    """
    from softnum.tta import device as find
    from softnum.tta.estimates import Device

    pairs = []
    for work, hardware in works:
        if device is not None:
            pairs += [(work, find(name.strip(), device_file)) for name in device.split(",")]
        elif hardware is not None:
            pairs.append((work, Device.of_hardware(hardware, f"array of {work.design}")))
        else:
            raise ValueError(
                f"design {work.design!r} states no hardware; name a device, as in --device v100 (softnum estimate "
                "--devices lists them)"
            )
    return pairs


def _hardware(design):
    from softnum.tta import Hardware

    return Hardware.from_table(design.hardware, f"{design.path}: [hardware]") if design.hardware else None


def _own_bits(design):
    """Bits of the formats that only the design's files know, by their name in the file."""
    stated = [*design.roles.values(), *(rounding for _, roles, *_ in design.layers for rounding in roles.values())]
    widths = {}
    for rounding in stated:
        if hasattr(rounding, "format"):
            widths |= rounding.format.own_widths(rounding.source)
    return widths
