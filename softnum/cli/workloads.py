"""How commands take a workload: a network that softnum trains, or a file."""

import json
from pathlib import Path

__all__ = ["WORKLOAD_HELP", "read_workloads", "workloads_of"]

WORKLOAD_HELP = (
    "A network that softnum trains (mlp, lenet5, resnet, ...), or a .json file with workloads, like the workloads.json "
    "of softnum tta."
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


def workloads_of(network, designs, batches, *, options=None, data=None):
    """Workloads of a network under designs at batch sizes, or those of a file.

    Parameters
    ----------
    network : str
        A trained network, or a file whose name ends in .json.
    designs : list of str
        Design files or names; none of a file.
    batches : list of int
    options : dict, optional
        The network's own parameters.
    data : str, optional
        Its data set.

    Returns
    -------
    list of (Workload, Hardware or None)
        With the hardware that the design states, if any.

    Raises
    ------
    ValueError
        If there is no such network, design or file.
    """
    if network.endswith(".json"):
        if designs or options or data:
            raise ValueError(f"{network} says its designs and batches itself; leave the other options out")
        return [(work, None) for work in read_workloads(network)]
    from softnum.train import design_gemms, load_design, make_network
    from softnum.tta import DesignPoint, Gemm, Hardware, workload_of_gemms

    model = make_network(network, data=data, **(options or {}))
    found = []
    for name in designs or ["a-float32"]:
        design = load_design(name)
        design.check_layers(model.layer_names)
        design.check_operators(model.operators)
        hardware = Hardware.from_table(design.hardware, f"{design.path}: [hardware]") if design.hardware else None
        for batch in batches:
            gemms = tuple(Gemm.from_table(row) for row in design_gemms(design, model, batch))
            found.append((workload_of_gemms(DesignPoint(design.name, hardware, gemms), batch, network), hardware))
    return found
