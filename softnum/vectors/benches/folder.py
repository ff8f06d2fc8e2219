"""A folder with all that verifies a design: bench, cocotb test, and a Makefile that runs them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from softnum.runtime.atomic import write_atomic
from softnum.runtime.config import __version__
from softnum.vectors.benches.cocotb_text import cocotb_test_of
from softnum.vectors.benches.covergroups import coverage_package_of
from softnum.vectors.benches.pyuvm_text import pyuvm_test_of
from softnum.vectors.benches.uvm_text import uvm_package_of, uvm_top_of
from softnum.vectors.benches.verilog import bench_of
from softnum.vectors.benches.wiring import Wiring
from softnum.vectors.plans.packed import PackedSpec

__all__ = ["BENCH_INCLUDE", "write_bench"]

#: what benches include, those of the examples too
BENCH_INCLUDE = Path(__file__).with_name("vectors.vh")

_MAKEFILE = """\
# Verifies {top}: {command}
# Made by softnum {version}: softnum rtl bench. Targets: verify (vectors, simulation, check), coverage (of the
# answers, as UCIS XML), cocotb, clean.
SIM ?= icarus
COUNT ?=
SEED ?= 0
STALLS ?= {stalls}
SOFTNUM ?= softnum
PYTHON ?= python3
PLUSARGS ?=
LIMIT ?= 5000
CHECK ?= {check}
# more options of the compilers, as -fno-dfg or -Wno-BLKANDNBLK
ICARUS_FLAGS ?=
VERILATOR_FLAGS ?=

QUESTION := {question}
SOURCES := {sources}
INCLUDED := $(wildcard $(foreach d,{include} $(sort $(dir $(SOURCES))),$(foreach e,vh svh,$(d)/*.$(e) $(d)/*/*.$(e))))
ICARUS = -g2012 {icarus} $(ICARUS_FLAGS)
VERILATOR = --binary -O3 -Wno-fatal --timescale 1ns/1ps -CFLAGS -std=gnu++20 {verilator} $(VERILATOR_FLAGS)

.PHONY: verify coverage cocotb clean FORCE
.DELETE_ON_ERROR:

verify: answers-$(SIM).txt
\t$(SOFTNUM) vectors check $< $(CHECK) --out report.json {html}--junit report.xml --sarif report.sarif

coverage: answers-$(SIM).txt
\t$(SOFTNUM) vectors coverage $< -o coverage.xml

# Files of what was asked for last: what depends on one is made again where that differs.
define remember
$(1): export ASKED = $(2)
$(1): FORCE
\t@printf '%s\\n' "$$$$ASKED" | cmp -s - $$@ || printf '%s\\n' "$$$$ASKED" > $$@
endef
$(eval $(call remember,asked,$$(QUESTION) $$(COUNT) $$(SEED)))
$(eval $(call remember,asked-icarus,$$(ICARUS)))
$(eval $(call remember,asked-verilator,$$(VERILATOR)))
$(eval $(call remember,asked-plusargs,$$(STALLS) $$(SEED) $$(PLUSARGS)))

vectors.txt: asked
\t$(SOFTNUM) vectors generate $(QUESTION) $(if $(COUNT),--count $(COUNT)) --seed $(SEED) -o $@ \\
\t\t--coverage-out coverage.json

ANSWER = +in=vectors.txt +out=$@.part +stalls=$(STALLS) +seed=$(SEED) $(PLUSARGS)

answers-icarus.txt: build/tb_{top}.vvp vectors.txt asked-plusargs
\tvvp -n $< $(ANSWER)
\tmv $@.part $@

build/tb_{top}.vvp: $(SOURCES) $(INCLUDED) tb_{top}.sv vectors.vh asked-icarus
\tmkdir -p build
\tiverilog $(ICARUS) -I . -s tb_{top} -o $@ $(SOURCES) tb_{top}.sv

answers-verilator.txt: build/verilator/Vtb_{top} vectors.txt asked-plusargs
\t$< $(ANSWER)
\tmv $@.part $@

build/verilator/Vtb_{top}: $(SOURCES) $(INCLUDED) tb_{top}.sv vectors.vh asked-verilator
\tmkdir -p build/verilator
\tverilator $(VERILATOR) -I. --top-module tb_{top} --Mdir build/verilator $(SOURCES) tb_{top}.sv

cocotb: vectors.txt
\t{cocotb}

clean:
\trm -rf build asked asked-* vectors.txt coverage.json coverage.xml answers-*.txt answers-*.part cocotb.txt \\
\t\treport.json report.html report.xml report.sarif
"""

_UVM = """
# UVM under Verilator 5.48: UVM is its folder src, as github.com/chipsalliance/uvm-verilator has it (uvm-2017-1.0-vlt)
UVM ?= uvm/src
UVM_MAKE ?=
uvm: vectors.txt $(SOURCES) uvm_{top}_pkg.sv uvm_{top}.sv
\tverilator --binary --timing -Wno-fatal -Wno-lint --timescale 1ns/1ps +define+UVM_NO_DPI +incdir+$(UVM) \\
\t  -MAKEFLAGS "$(UVM_MAKE)" --top-module uvm_{top} --Mdir build/uvm \\
\t  $(UVM)/uvm_pkg.sv {includes} $(SOURCES) uvm_{top}_pkg.sv uvm_{top}.sv
\tbuild/uvm/Vuvm_{top} +in=vectors.txt +out=answers-uvm.txt +stalls=$(STALLS) $(PLUSARGS)
\t$(SOFTNUM) vectors check answers-uvm.txt $(CHECK)
.PHONY: uvm
"""
_PYUVM = """
pyuvm: vectors.txt
\tSEED=$(SEED) STALLS=$(STALLS) LIMIT=$(LIMIT) $(PYTHON) test_pyuvm_{top}.py
.PHONY: pyuvm
"""


_MIXED = "@echo 'mixed vectors have no cocotb test; make verify simulates them'; exit 2"


def write_bench(
    folder: Path, wiring: Wiring, sources: Sequence[Path], *, parameters: Mapping[str, int] | None = None,
    include: Sequence[Path] = (), stalls: int = 25, outstanding: int = 0,
    uvm: bool = False, pyuvm: bool = False,
) -> list[Path]:  # fmt: skip
    """Write the bench of a design into a folder.

    Parameters
    ----------
    folder : Path
        It is made if need be; files that are there are replaced.
    wiring : Wiring
        What each port is for.
    sources, include : sequence of Path
        The design's files and folders of included ones; the Makefile has their places as seen from the folder.
    parameters : mapping of str to int, optional
        Of the design.
    stalls : int
        Percent of the clocks in which valid, ready and enable signals pause, 0 to 99.
    outstanding : int
        How many vectors are on their way at most; 0: as many as the design takes.
    uvm, pyuvm : bool
        Whether to write a UVM bench in SystemVerilog (``uvm_TOP_pkg.sv``, ``uvm_TOP.sv``), and a test in pyuvm
        (``test_pyuvm_TOP.py``), too.

    Returns
    -------
    list of Path
        ``tb_TOP.sv``, ``vectors.vh``, ``Makefile`` and, but of mixed vectors, ``coverage_TOP_pkg.sv``, ``test_TOP.py``.

    Raises
    ------
    ValueError
        For a path that a Makefile cannot state, and numbers out of range.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from softnum.vectors import VectorSpec
    >>> from softnum.vectors.benches.handshakes import handshake_named
    >>> from softnum.vectors.benches.ports import stated_design
    >>> from softnum.vectors.benches.roles import wiring_of
    >>> design = stated_design("mul", "a:in:8,b:in:8,result:out:8")
    >>> wiring = wiring_of(design, VectorSpec.make("multiply", "e4m3"), handshake_named("combinational"))
    >>> with TemporaryDirectory() as folder:
    ...     made = write_bench(Path(folder), wiring, [Path(folder) / "mul.sv"])
    ...     print([path.name for path in made])
    ['tb_mul.sv', 'vectors.vh', 'Makefile', 'coverage_mul_pkg.sv', 'test_mul.py']
    """
    if not 0 <= stalls <= 99:
        raise ValueError(f"stalls must lie in 0..99 percent, got {stalls}")
    if outstanding < 0 or (outstanding and not wiring.handshake.flows):
        raise ValueError(
            f"outstanding must be 1 or more, and needs a handshake with valid signals; got {outstanding} of "
            f"{wiring.handshake}"
        )  # fmt: skip
    if any(wiring.design.top == "tb_" + name for name in ("", wiring.design.top)):
        raise ValueError(
            f"the design is called {wiring.design.top}, which is the name of the generated bench; rename the design, "
            "or name another --top"
        )
    here = folder.absolute()
    sources, include = [_seen_from(here, p) for p in sources], [_seen_from(here, p) for p in include]
    parameters = dict(parameters or {})
    top = wiring.design.top
    mixed, packed = wiring.spec.op == "mixed", isinstance(wiring.spec, PackedSpec)
    if (mixed or packed) and (uvm or pyuvm):
        raise ValueError(
            "UVM and pyuvm benches support one operation, not mixed vectors or words of lanes; leave --uvm and --pyuvm "
            "out"
        )
    question = wiring.spec.options()
    check = "" if wiring.flags or not wiring.spec.has_flags else "--ignore-flags"
    makefile = _MAKEFILE.format(
        top=top, version=__version__, stalls=stalls, check=check, question=_quoted(question), sources=" ".join(sources),
        include=" ".join(include), icarus=" ".join(f"-I {path}" for path in include),
        verilator=" ".join(f"-I{path}" for path in include),
        command=f"{wiring.spec.op}, {wiring.handshake}",
        html="" if mixed or packed else "--html report.html ",
        cocotb=_MIXED if mixed else f"SEED=$(SEED) STALLS=$(STALLS) LIMIT=$(LIMIT) $(PYTHON) test_{top}.py",
    )  # fmt: skip
    texts = {
        f"tb_{top}.sv": bench_of(wiring, parameters, stalls, outstanding),
        "vectors.vh": BENCH_INCLUDE.read_text(encoding="utf-8"),
        "Makefile": "\n".join(line.rstrip() for line in makefile.split("\n")),
    }
    if not mixed and not packed:
        texts[f"coverage_{top}_pkg.sv"] = coverage_package_of(wiring)
    if not mixed:
        texts[f"test_{top}.py"] = cocotb_test_of(wiring, sources, include, parameters, outstanding, stalls)
    if uvm:
        texts[f"uvm_{top}_pkg.sv"] = uvm_package_of(wiring, stalls, outstanding)
        texts[f"uvm_{top}.sv"] = uvm_top_of(wiring, parameters)
        texts["Makefile"] += _UVM.format(top=top, includes=" ".join(f"-I{path}" for path in include))
    if pyuvm:
        texts[f"test_pyuvm_{top}.py"] = pyuvm_test_of(wiring, sources, include, parameters, outstanding, stalls)
        texts["Makefile"] += _PYUVM.format(top=top)
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for name, text in texts.items():
        write_atomic(folder / name, text)
        made.append(folder / name)
    return made


def _quoted(question: str) -> str:
    """The options as make and its shell read them."""
    return question.replace("$", "$$").replace("#", r"\#")


def _seen_from(folder: Path, path: Path) -> str:
    """The path as a Makefile in the folder states it."""
    text = os.path.relpath(Path(path).absolute(), folder)
    if re.search(r"[\s$#%:;'\"\\*?|&<>()~]", text):
        raise ValueError(
            f"a Makefile cannot state the path {text!r}, which has a space or a sign of the shell's; rename it"
        )
    return text
