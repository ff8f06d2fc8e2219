"""Old names of modules that have moved, so that tests written for the old places run unchanged.

``import softnum.old``, ``from softnum.old import x``, ``from softnum import old`` and paths in text, as monkeypatch
takes them, give the module of the new name, the same object. A public function that bears a module's name stays what
the package holds under it, as `softnum.matmul` does. Programs that a test starts know the new names alone.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

__all__ = ["MOVED", "Moved"]

#: old name: new name, of a module or of a package with all that it holds. An entry goes when no test has its old name.
MOVED: dict[str, str] = {
    "softnum._blocks": "softnum.mac._blocks",
    "softnum._core": "softnum.runtime._core",
    "softnum._draw": "softnum.vectors.plans._draw",
    "softnum._gemm": "softnum.mac._gemm",
    "softnum._probe": "softnum.inspect._probe",
    "softnum._tables": "softnum.runtime._tables",
    "softnum.array": "softnum.arrays.container",
    "softnum.array_functions": "softnum.ops.numpy_functions",
    "softnum.array_text": "softnum.arrays.text",
    "softnum.atomic": "softnum.runtime.atomic",
    "softnum.backend": "softnum.runtime.gateway",
    "softnum.block_codes": "softnum.arrays.codecs.blocks",
    "softnum.block_fast": "softnum.mac.products.blocks.fast",
    "softnum.block_matmul": "softnum.mac.products.blocks.matrices",
    "softnum.blocks": "softnum.formats.blocks",
    "softnum.c_text": "softnum.formats.c_text",
    "softnum.config": "softnum.runtime.config",
    "softnum.custom": "softnum.formats.custom",
    "softnum.custom.gemm": "softnum.mac.products.custom.codes",
    "softnum.custom_steps": "softnum.mac.products.custom.steps",
    "softnum.engines": "softnum.mac.products.engines",
    "softnum.environment": "softnum.arrays.environment",
    "softnum.exact": "softnum.mac.exact",
    "softnum.facts": "softnum.formats.facts",
    "softnum.fused": "softnum.mac.fused",
    "softnum.kernels.cache": "softnum.kernels.host.cache",
    "softnum.kernels.contractions": "softnum.kernels.host.contractions",
    "softnum.kernels.device._cuda": "softnum.kernels.device.runtime._cuda",
    "softnum.kernels.device._packed": "softnum.kernels.device.runtime.launches",
    "softnum.kernels.device.arrays": "softnum.kernels.device.runtime.arrays",
    "softnum.kernels.device.block_entries": "softnum.kernels.device.products.mad.fast_entries",
    "softnum.kernels.device.block_text": "softnum.kernels.device.blockformats.text",
    "softnum.kernels.device.bounds": "softnum.kernels.device.products.mad.bounds",
    "softnum.kernels.device.carriers": "softnum.kernels.device.elementwise.carriers",
    "softnum.kernels.device.computations": "softnum.kernels.device.elementwise.computations",
    "softnum.kernels.device.conv": "softnum.kernels.device.products.conv",
    "softnum.kernels.device.deferred": "softnum.kernels.device.elementwise.deferred",
    "softnum.kernels.device.dlpack": "softnum.kernels.device.runtime.dlpack",
    "softnum.kernels.device.entries": "softnum.kernels.device.products.entries",
    "softnum.kernels.device.fused_entries": "softnum.kernels.device.products.fused_text",
    "softnum.kernels.device.gemm": "softnum.kernels.device.products.gemm",
    "softnum.kernels.device.gemm_blocks": "softnum.kernels.device.products.mad.fast",
    "softnum.kernels.device.gemm_custom": "softnum.kernels.device.products.custom",
    "softnum.kernels.device.gemm_definition": "softnum.kernels.device.products.mad.definition",
    "softnum.kernels.device.gemm_exact": "softnum.kernels.device.products.exact",
    "softnum.kernels.device.gemm_fused": "softnum.kernels.device.products.fused",
    "softnum.kernels.device.gemm_tables": "softnum.kernels.device.products.mad.tables",
    "softnum.kernels.device.movement": "softnum.kernels.device.runtime.movement",
    "softnum.kernels.device.operations": "softnum.kernels.device.elementwise.operations",
    "softnum.kernels.device.patterns": "softnum.kernels.device.elementwise.patterns",
    "softnum.kernels.device.quantize": "softnum.kernels.device.elementwise.conversion",
    "softnum.kernels.device.scalar_functions": "softnum.kernels.device.products.scalar_functions",
    "softnum.kernels.device.source": "softnum.kernels.device.runtime.source",
    "softnum.kernels.device.steps": "softnum.kernels.device.products.mad.steps",
    "softnum.kernels.device.strides": "softnum.kernels.device.runtime.strides",
    "softnum.kernels.device.sum_tables": "softnum.kernels.device.products.mad.sum_tables",
    "softnum.kernels.link": "softnum.kernels.check.link",
    "softnum.kernels.scalars": "softnum.kernels.host.scalars",
    "softnum.lanes": "softnum.arrays.lanes",
    "softnum.matmul": "softnum.mac.products.matrices",
    "softnum.modes": "softnum.formats.modes",
    "softnum.names": "softnum.formats.names",
    "softnum.order": "softnum.mac.order",
    "softnum.plan": "softnum.mac.plan",
    "softnum.presets": "softnum.mac.presets",
    "softnum.probes": "softnum.inspect.probes",
    "softnum.reference.units": "softnum.reference.mac",
    "softnum.scalar_codec": "softnum.arrays.codecs.scalar",
    "softnum.statistics": "softnum.mac.statistics",
    "softnum.sums": "softnum.mac.products.sums",
    "softnum.threads": "softnum.runtime.threads",
    "softnum.trace": "softnum.inspect.trace",
    "softnum.train.attention": "softnum.train.layers.attention",
    "softnum.train.backend": "softnum.train.engine.backend",
    "softnum.train.binary64": "softnum.train.engine.binary64",
    "softnum.train.blocks": "softnum.train.engine.blocks",
    "softnum.train.boxes": "softnum.train.datasets.boxes",
    "softnum.train.check": "softnum.train.inspect.gradients",
    "softnum.train.convolution": "softnum.train.layers.convolution",
    "softnum.train.coverage": "softnum.train.datasets.coverage",
    "softnum.train.cuda_backend": "softnum.train.engine.cuda_backend",
    "softnum.train.data": "softnum.train.datasets.sets",
    "softnum.train.dataflow": "softnum.train.inspect.dataflow",
    "softnum.train.dry_run": "softnum.train.inspect.dry_run",
    "softnum.train.enclosures": "softnum.train.engine.enclosures",
    "softnum.train.environments": "softnum.train.datasets.environments",
    "softnum.train.explain": "softnum.train.inspect.operations",
    "softnum.train.functions": "softnum.train.engine.functions",
    "softnum.train.image_files": "softnum.train.datasets.images",
    "softnum.train.initial": "softnum.train.engine.initial",
    "softnum.train.lock": "softnum.train.runs.lock",
    "softnum.train.loop": "softnum.train.runs.loop",
    "softnum.train.losses": "softnum.train.layers.losses",
    "softnum.train.nets.cells": "softnum.train.layers.cells",
    "softnum.train.nets.layers": "softnum.train.layers.feedforward",
    "softnum.train.normalisation": "softnum.train.layers.normalisation",
    "softnum.train.numerics": "softnum.train.engine.numerics",
    "softnum.train.objects": "softnum.train.designs.objects",
    "softnum.train.optimisers": "softnum.train.update.optimisers",
    "softnum.train.pooling": "softnum.train.layers.pooling",
    "softnum.train.profile": "softnum.train.inspect.profiler",
    "softnum.train.rating_files": "softnum.train.datasets.ratings",
    "softnum.train.record": "softnum.train.runs.record",
    "softnum.train.scaling": "softnum.train.update.scaling",
    "softnum.train.scenes": "softnum.train.datasets.scenes",
    "softnum.train.schedules": "softnum.train.update.schedules",
    "softnum.train.sentence_files": "softnum.train.datasets.sentences",
    "softnum.train.sequences": "softnum.train.layers.sequences",
    "softnum.train.series_files": "softnum.train.datasets.series",
    "softnum.train.sparsity": "softnum.train.designs.sparsity",
    "softnum.train.statistics": "softnum.train.runs.statistics",
    "softnum.train.statistics_plot": "softnum.train.inspect.plot",
    "softnum.train.study": "softnum.train.studies.study",
    "softnum.train.tensor": "softnum.train.engine.tensor",
    "softnum.train.unit_specs": "softnum.train.designs.unit_specs",
    "softnum.train.watch": "softnum.train.engine.watch",
    "softnum.train.workload": "softnum.train.inspect.workloads",
    "softnum.tta.energy": "softnum.tta.workloads.energy",
    "softnum.tta.interaction": "softnum.tta.outcomes.interaction",
    "softnum.tta.intervals": "softnum.tta.outcomes.intervals",
    "softnum.ufuncs": "softnum.arrays.ufuncs",
    "softnum.unfold": "softnum.mac.products.unfold",
    "softnum.units": "softnum.mac.mad",
    "softnum.values": "softnum.arrays.conversion",
    "softnum.vectors.causes": "softnum.vectors.checks.causes",
    "softnum.vectors.codes": "softnum.vectors.plans.codes",
    "softnum.vectors.comparison": "softnum.vectors.checks.comparison",
    "softnum.vectors.compressed": "softnum.vectors.files.compressed",
    "softnum.vectors.dialects": "softnum.vectors.files.dialects",
    "softnum.vectors.generator": "softnum.vectors.plans.generator",
    "softnum.vectors.operands": "softnum.vectors.plans.operands",
    "softnum.vectors.report": "softnum.vectors.checks.report",
    "softnum.vectors.spec": "softnum.vectors.plans.spec",
    "softnum.vectors.strata": "softnum.vectors.plans.strata",
    "softnum.vectors.text": "softnum.vectors.files.text",
    "softnum.vectors.unit_spec": "softnum.vectors.plans.unit_spec",
}


def _keep_once(package: ModuleType, name: str) -> None:
    """Let pass, without effect, that the import system is about to put a module in place of package.name."""
    kind = type(package)

    class Keeping(kind):
        def __setattr__(self, key, value):
            if key == name and isinstance(value, ModuleType):
                self.__class__ = kind
            else:
                super().__setattr__(key, value)

    package.__class__ = Keeping


class _Alias:
    """Loads, for an old name, the module of the new one."""

    def __init__(self, new: str) -> None:
        self.new = new

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        sys.modules[module.__name__] = import_module(self.new)
        package, _, name = module.__name__.rpartition(".")
        if not isinstance(getattr(sys.modules[package], name, module), ModuleType):
            _keep_once(sys.modules[package], name)


class Moved:
    """A finder for sys.meta_path, before all others: {old name: new name}; both lie in packages.

    Raises
    ------
    ImportError
        Of an old name that there still, or again, is a file of; and where there is no module of the new name.
    """

    def __init__(self, table: dict[str, str]) -> None:
        self.table = table

    def find_spec(self, name, path=None, target=None):
        old = name
        while old and old not in self.table:
            old = old.rpartition(".")[0]
        new = self.table[old] + name.removeprefix(old) if old else self._left(name)
        if new is None or new == name:
            return None
        if old in ("", name) and PathFinder.find_spec(name, path) is not None:
            if not old:
                return None
            raise ImportError(f"{name} is there: it cannot stand for {new}", name=name)
        return ModuleSpec(name, _Alias(new))

    def _left(self, name: str) -> str | None:
        """Where a module is that left a package when this moved: by its old name the new package is asked for it."""
        for old, new in self.table.items():
            if name.startswith(f"{new}.") and (entry := old + name.removeprefix(new)) in self.table:
                return self.table[entry]
        return None
