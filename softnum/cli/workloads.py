"""How commands take a workload: a network that softnum trains, one that it only times, or a file."""

import difflib
import json
import tomllib
from pathlib import Path

__all__ = ["WORKLOAD_HELP", "read_workloads", "workloads_of"]

WORKLOAD_HELP = (
    "A network that softnum trains (mlp, lenet5, resnet, ...), one that it only times (resnet50, bert-base, ...), or a "
    ".json file with workloads, like the workloads.json of softnum tta."
)


def read_workloads(path):
    """The workloads of a JSON file: one table, or several under the key "workloads".

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no such file, or it is not of that form; the message names file, line and key.
    """
    from softnum.tta import Workload
    from softnum.tta.quantities import check_keys

    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no workload file {str(path)!r}")
    try:
        data = json.loads(path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not UTF-8 text ({error}); save it as UTF-8") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}, line {error.lineno}: not JSON ({error.msg})") from None
    except (ValueError, RecursionError) as error:  # numbers too long, brackets too deep
        raise ValueError(f"{path}: not readable as JSON ({error})") from None
    tables = [data]
    if isinstance(data, dict) and "workloads" in data:
        check_keys(data, ["workloads"], ["schema"], str(path))
        if data.get("schema", 1) != 1:
            raise ValueError(f"{path}: schema {data['schema']!r} is not known to this softnum, which reads 1")
        tables = data["workloads"]
        if not isinstance(tables, list) or not tables:
            raise ValueError(f"{path}: workloads must be a list of at least one table")
    return [Workload.from_table(table, f"{path}: workload {i}") for i, table in enumerate(tables)]


def workloads_of(network, designs, batches, *, precisions=(), options=None, data=None):
    """Workloads of a network under designs at batch sizes, or those of a file.

    Parameters
    ----------
    network : str
        A trained network, an architecture, or a file whose name ends in .json.
    designs : list of str
        Design files or names; none of a file.
    batches : list of int
    precisions : list of str
        Of an architecture, presets like "bfloat16" in place of designs.
    options : dict, optional
        A trained network's own parameters.
    data : str, optional
        Its data set.

    Returns
    -------
    list of (Workload, Hardware or None)
        With the hardware that the design states, if any.

    Raises
    ------
    ValueError
        If there is no such network, design, preset or file.
    """
    from softnum.tta.architectures.catalogue import architecture_names

    if network.endswith(".json"):
        if designs or precisions or options or data:
            raise ValueError(f"{network} says its designs and batches itself; leave the other options out")
        return [(work, None) for work in read_workloads(network)]
    if network in architecture_names():
        if options or data:
            raise ValueError(f"{network} is only timed: it has no options and no data set")
        return _architecture(network, designs, precisions, batches)
    if precisions:
        raise ValueError(f"{network} is trained under a design; --precision is for {', '.join(architecture_names())}")
    return _trained(network, designs, batches, options or {}, data)


def _trained(network, designs, batches, options, data):
    from softnum.train import Settings, load_design, workload
    from softnum.train.nets import NETWORKS
    from softnum.tta.architectures.catalogue import architecture_names

    if network not in NETWORKS:
        names = (*NETWORKS, *architecture_names())
        near = difflib.get_close_matches(network, names, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise ValueError(f"unknown network {network!r}; {hint}Known: {', '.join(names)}, or a .json file")
    settings = Settings(network=network, network_options=options, data=data)
    found = []
    for name in designs or ["a-float32"]:
        design = load_design(name)
        hardware = _hardware(design)
        found += [(workload(settings, design, batch), hardware) for batch in batches]
    return found


def _architecture(network, designs, precisions, batches):
    from softnum.tta.architectures import Precision, lower
    from softnum.tta.architectures.catalogue import architecture

    if designs and precisions:
        raise ValueError("--design and --precision both say in which formats; leave one of them out")
    ways = [(Precision.named(name), None) for name in precisions or ([] if designs else ["float32"])]
    for name in designs:
        from softnum.train import load_design

        design = load_design(name)
        table = {"name": design.name, **tomllib.loads(design.path.read_text(encoding="utf-8"))}
        ways.append((Precision.of_design(table, _own_bits(design)), _hardware(design)))
    net = architecture(network)
    return [(lower(net, batch, precision), hardware) for precision, hardware in ways for batch in batches]


def _hardware(design):
    from softnum.tta import Hardware

    return Hardware.from_table(design.hardware, f"{design.path}: [hardware]") if design.hardware else None


def _own_bits(design):
    """Bits of the formats that only the design's files know, by their name in the file."""
    stated = [*design.roles.values(), *(rounding for _, roles, *_ in design.layers for rounding in roles.values())]
    return {
        rounding.source.rpartition(":")[2]: rounding.format.bits
        for rounding in stated
        if hasattr(rounding, "format") and getattr(rounding.format, "kind", None) not in ("float", "fixed", "block")
    }
