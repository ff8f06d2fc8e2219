"""How the C core and the extensions are built; everything else stands in pyproject.toml.

The C core (csrc, but for its tests and the model for simulators) is compiled once, to a static library that every
extension (softnum/**/*.pyx) links. Files are made in build/objects, several at a time, and kept there: one is made
again only if its command or the content of a file that it was made from has changed.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import Cython
import numpy as np
from setuptools import Extension, setup
from setuptools.command.build import build
from setuptools.command.build_ext import build_ext

# what is compiled for another machine, or with another compiler for this one (make wheels), is kept apart
OBJECTS = Path("build/objects", os.environ.get("_PYTHON_HOST_PLATFORM", ""))
CORE = sorted(p for p in Path("csrc").rglob("*.c") if p.parts[1] not in ("dpi", "tests"))
HEADERS = sorted(Path("csrc").rglob("*.h"))
BINDINGS = sorted(Path("softnum").rglob("*.pyx"))
SHARED = "softnum.runtime._shared"  # what Cython writes for memoryviews, once for all bindings

# No -march: the instruction set is chosen when the package is imported. Contraction and fast-math would change bits.
FLAGS = ["-std=c11", "-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fvisibility=hidden", "-MMD"]
# A short loop that crosses a cache line is a fifth slower: no change elsewhere in a file may move it there.
FLAGS += ["-falign-functions=64", "-falign-loops=32"]
# Each extension keeps of csrc/targets, three files an instruction set, what it calls.
FLAGS += ["-ffunction-sections", "-fdata-sections"]
LINK_FLAGS = ["-pthread", "-Wl,-dead_strip" if sys.platform == "darwin" else "-Wl,--gc-sections"]
if sys.platform == "win32":
    FLAGS, LINK_FLAGS = ["/std:c11", "/O2", "/fp:precise", "/Gy", "/Gw"], ["/OPT:REF"]
else:
    asked = os.environ.get("CFLAGS", "").split()
    if any(flag.startswith("-O") for flag in asked):
        FLAGS.remove("-O3")
    if "-g" not in asked:
        FLAGS.append("-g0")  # Python's own flags ask for debugging information, which takes a third of the time

# The extensions run on every Python from 3.11 on, except where it is free-threaded: that one has no stable ABI.
ABI3 = not sysconfig.get_config_var("Py_GIL_DISABLED")
MACROS = [("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION"), ("NPY_TARGET_VERSION", "NPY_2_0_API_VERSION")]
if ABI3:
    MACROS.append(("Py_LIMITED_API", "0x030b0000"))

NUMPY_HEADERS = os.environ.get("SOFTNUM_NUMPY_HEADERS") or np.get_include()  # those of another machine: make wheels

digests = {}


def digest(path):
    """Of a file's content; None if there is no such file."""
    path = Path(path)
    if path not in digests:
        digests[path] = hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else None
    return digests[path]


def make(target, command, action, inputs):
    """Run action(), which makes the file `target`, unless its record shows that it would make the same again.

    inputs: called afterwards, for the files that it was made from. Returns the target.
    """
    record = Path(f"{target}.json")
    if record.exists() and digest(target):
        known = json.loads(record.read_text(encoding="utf-8"))
        if known["command"] == command and all(digest(path) == content for path, content in known["inputs"].items()):
            return target
    for path in (record, target):
        path.unlink(missing_ok=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    action()
    digests.pop(target, None)
    made_from = {str(path): digest(path) for path in inputs()}
    record.write_text(json.dumps({"command": command, "inputs": made_from}, indent=1), encoding="utf-8")
    return target


def inputs_of(rule):
    """The inputs of a make rule, as compilers write them, that lie in this checkout."""
    paths = rule.read_text(encoding="utf-8").replace("\\\n", " ").partition(": ")[2].split()
    return [path for path in paths if not (os.path.isabs(path) or path.startswith(".."))]


class BuildExtensions(build_ext):
    """Compiles the core and the bindings, and links each extension with what it needs of the core."""

    def build_extensions(self):
        for path in (*CORE, *HEADERS, *Path("softnum").rglob("*.p[yx][xd]")):
            digest(path)  # before all else: what is edited from here on counts as changed the next time
        cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        with ThreadPoolExecutor(int(self.parallel or cpus)) as pool:
            try:
                core = [pool.submit(self.compile, source) for source in CORE]
                bindings = [pool.submit(self.compile_binding, ext) for ext in self.extensions]
                library = self.archive([job.result() for job in core])
                objects = [job.result() for job in bindings]
                list(pool.map(self.link, self.extensions, objects, [library] * len(objects)))
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise

    def compile(self, source, folder=OBJECTS, macros=(), include_dirs=(), versions=()):
        """The object of a C source."""
        [target] = self.compiler.object_filenames([str(source)], output_dir=str(folder))
        target = Path(target)
        return make(
            target,
            [*getattr(self.compiler, "compiler_so", []), *FLAGS, *map("=".join, macros), *versions],
            lambda: self.compiler.compile(
                [str(source)], str(folder), [*macros], ["csrc", *include_dirs], extra_postargs=FLAGS
            ),
            lambda: inputs_of(target.with_suffix(".d")) if "-MMD" in FLAGS else [source, *HEADERS],
        )

    def compile_binding(self, ext):
        """The object of an extension's Cython source."""
        versions = [f"Cython {Cython.__version__}", f"NumPy {np.__version__}"]
        target = OBJECTS / Path(*ext.name.split(".")).with_suffix(".c")
        # what threads share is given as elementwise.h says
        options = ["--module-name", ext.name, "-X", "freethreading_compatible=True"]
        if ext.name == SHARED:
            written, inputs = ["--generate-shared", str(target)], list
        else:
            options += ["--depfile", "-X", "show_performance_hints=False", "--shared", SHARED]
            # `python -m cython` looks where Cython lies first, which may hold another NumPy than the one imported here
            options += ["-I", ".", "-I", str(Path(np.__file__).parents[1])]
            written, inputs = [*ext.sources, "-o", str(target)], lambda: inputs_of(Path(f"{target}.dep"))
        make(
            target,
            [*options, *versions],
            lambda: subprocess.run([sys.executable, "-m", "cython", *options, *written], check=True),
            inputs,
        )
        return self.compile(target, "", MACROS, [NUMPY_HEADERS], [*versions, self.get_ext_filename(ext.name)])

    def archive(self, objects):
        """The static library of the core."""
        target = Path(self.compiler.library_filename("softnum", output_dir=str(OBJECTS)))
        return make(
            target,
            [*getattr(self.compiler, "archiver", []), *map(str, objects)],  # a new file makes it anew
            lambda: self.compiler.create_static_lib([*map(str, objects)], "softnum", str(OBJECTS)),
            lambda: objects,
        )

    def link(self, ext, *objects):
        """The extension, put where it belongs."""
        target = OBJECTS / self.get_ext_filename(ext.name)
        make(
            target,
            [*getattr(self.compiler, "linker_so", []), *LINK_FLAGS],
            lambda: self.compiler.link_shared_object(
                [*map(str, objects)], str(target), libraries=self.get_libraries(ext), extra_postargs=LINK_FLAGS,
                export_symbols=self.get_export_symbols(ext), build_temp=str(OBJECTS),
            ),
            lambda: objects,
        )  # fmt: skip
        put = Path(self.get_ext_fullpath(ext.name))
        put.parent.mkdir(parents=True, exist_ok=True)
        self.copy_file(str(target), str(put))

    def copy_extensions_to_source(self):
        """As setuptools does; what an earlier build left there under a name that Python prefers is deleted."""
        super().copy_extensions_to_source()
        for ext in self.extensions:
            kept, _ = self._get_inplace_equivalent(self.get_finalized_command("build_py"), ext)
            for suffix in EXTENSION_SUFFIXES:
                other = Path(kept).with_name(ext.name.rpartition(".")[2] + suffix)
                if other != Path(kept):
                    other.unlink(missing_ok=True)


class Build(build):
    """Begins with an empty folder: all that lies there goes into the wheel."""

    def run(self):
        if not getattr(self, "editable_mode", False):  # which old build commands lack
            shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()


setup(
    cmdclass={"build": Build, "build_ext": BuildExtensions},
    ext_modules=[
        Extension(SHARED, [], py_limited_api=ABI3),
        *(
            Extension(".".join(source.with_suffix("").parts), [source.as_posix()], py_limited_api=ABI3)
            for source in BINDINGS
        ),
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if ABI3 else {},
)
