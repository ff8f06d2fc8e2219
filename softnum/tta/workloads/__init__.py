"""What an iteration consists of, and what it takes: time, memory, energy, network."""

from typing import TYPE_CHECKING

from softnum.runtime.later import names_on_demand

if TYPE_CHECKING:
    from softnum.tta.workloads.areas import MultiplierArea, equal_area, multiplier_areas
    from softnum.tta.workloads.energy import ENERGY_KINDS, ENERGY_TABLES, Energy, OperationEnergy, operation_energy
    from softnum.tta.workloads.energy_files import read_energy_table
    from softnum.tta.workloads.energy_prices import EnergyTable
    from softnum.tta.workloads.exchange import Exchange, ParallelTime, Transfer, gradient_bytes
    from softnum.tta.workloads.layer_times import gemm_layer_times, read_layer_times
    from softnum.tta.workloads.memory import Memory, largest_batch, memory_table
    from softnum.tta.workloads.network_time import exposed_time, minimum_bandwidth, parallel_sweep
    from softnum.tta.workloads.operations import STAGES, TENSOR_CLASSES, StoredTensor
    from softnum.tta.workloads.products import ProductName, network_digest, read_product_name
    from softnum.tta.workloads.served import ServedTime, served_time
    from softnum.tta.workloads.unit import UnitHardware
else:
    __getattr__, __dir__ = names_on_demand(
        __name__,
        {
            "softnum.tta.workloads.areas": ("MultiplierArea", "equal_area", "multiplier_areas"),
            "softnum.tta.workloads.energy": (
                "ENERGY_KINDS",
                "ENERGY_TABLES",
                "Energy",
                "OperationEnergy",
                "operation_energy",
            ),
            "softnum.tta.workloads.energy_files": ("read_energy_table",),
            "softnum.tta.workloads.energy_prices": ("EnergyTable",),
            "softnum.tta.workloads.exchange": ("Exchange", "ParallelTime", "Transfer", "gradient_bytes"),
            "softnum.tta.workloads.layer_times": ("gemm_layer_times", "read_layer_times"),
            "softnum.tta.workloads.memory": ("Memory", "largest_batch", "memory_table"),
            "softnum.tta.workloads.network_time": ("exposed_time", "minimum_bandwidth", "parallel_sweep"),
            "softnum.tta.workloads.operations": ("STAGES", "StoredTensor", "TENSOR_CLASSES"),
            "softnum.tta.workloads.products": ("ProductName", "network_digest", "read_product_name"),
            "softnum.tta.workloads.served": ("ServedTime", "served_time"),
            "softnum.tta.workloads.unit": ("UnitHardware",),
        },
    )

__all__ = [
    "ENERGY_KINDS",
    "ENERGY_TABLES",
    "Energy",
    "EnergyTable",
    "Exchange",
    "Memory",
    "MultiplierArea",
    "OperationEnergy",
    "ParallelTime",
    "ProductName",
    "STAGES",
    "ServedTime",
    "StoredTensor",
    "TENSOR_CLASSES",
    "Transfer",
    "UnitHardware",
    "equal_area",
    "exposed_time",
    "gemm_layer_times",
    "gradient_bytes",
    "largest_batch",
    "memory_table",
    "minimum_bandwidth",
    "multiplier_areas",
    "network_digest",
    "operation_energy",
    "parallel_sweep",
    "read_energy_table",
    "read_layer_times",
    "read_product_name",
    "served_time",
]
