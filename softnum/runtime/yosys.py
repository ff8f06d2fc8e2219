"""Yosys (https://yosyshq.net/yosys): how it is given the files of a design in Verilog, and what it says of them."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

__all__ = ["DesignFiles", "complaints", "other_tops", "plain_name"]


class DesignFiles:
    """The files of a design, its top module and the values of its parameters, all checked.

    Parameters
    ----------
    sources : iterable of path-like
        Verilog; of SystemVerilog what Yosys reads, in files that end in .sv.
    top : str, optional
        The module. Default: the one that no other has in it. An escaped identifier is written as Verilog has it,
        with its backslash: r"\\foo.bar".
    parameters : mapping of str to int, optional
        Values of the module's parameters, which may have escaped names too; they need `top`.
    include : iterable of path-like
        Folders of files that the sources include.
    yosys : str
        The program.
    need : str
        What needs it, for the error where it is not there.

    Attributes
    ----------
    files : list of pathlib.Path
        The sources, as absolute paths.
    where : str
        Their names, for errors.

    Raises
    ------
    FileNotFoundError
        If Yosys, a file or a folder is not there.
    ValueError
        If there is no file, one has a path that Yosys does not take, or a name is no identifier of Verilog.

    Examples
    --------
    >>> DesignFiles(["none.v"], yosys="true", need="softnum rtl area")
    Traceback (most recent call last):
        ...
    FileNotFoundError: no file 'none.v'
    """

    def __init__(
        self, sources: Iterable, *, top: str | None = None, parameters: Mapping[str, int] | None = None,
        include: Iterable = (), yosys: str = "yosys", need: str,
    ) -> None:  # fmt: skip
        program = shutil.which(yosys)
        if program is None:
            raise FileNotFoundError(
                f"no program {yosys!r}; {need} needs Yosys: Debian's package yosys, or one named with --yosys"
            )
        self.program = program
        sources = [Path(source) for source in sources]
        if not sources:
            raise ValueError("no design: name its files")
        for path in sources:
            if not path.is_file():
                raise FileNotFoundError(f"no file {str(path)!r}")
        self.files = [path.resolve() for path in sources]
        for path in self.files:
            if not str(path).isprintable() or re.search(r'["\\*?\[]', str(path)):  # it would read what matches * ? [
                raise ValueError(
                    f"{str(path)!r}: Yosys takes no path with a quotation mark, a backslash, one of * ? [ or what "
                    "cannot be printed; rename it"
                )
        self.where = ", ".join(path.name for path in self.files)
        self.folders = [Path(path).resolve() for path in include]
        for path in self.folders:
            if not path.is_dir():
                raise FileNotFoundError(f"no folder {str(path)!r} of files to include")
        if parameters and top is None:
            raise ValueError("values of parameters need the module that has them: state --top")
        self.top = None if top is None else _identifier(top)
        self.parameters = {_identifier(name): value for name, value in (parameters or {}).items()}

    def read(self, *, systemverilog: bool = False, defer: bool = False) -> list[str]:
        """The commands that read the files: all of them as SystemVerilog, or those that end in .sv; with `defer`, no
        module is elaborated before the hierarchy says so."""
        options = " ".join(["", *(["-defer"] if defer else []), *(f"-Iinclude{i}" for i in range(len(self.folders)))])
        return [
            f'read_verilog{" -sv" if systemverilog or path.suffix == ".sv" else ""}{options} "{path}"'
            for path in self.files
        ]

    def hierarchy(self, *, check: bool = True) -> str:
        """The command that finds the top module and elaborates it with its parameters; with `check`, all that it has in
        it has to be there."""
        values = "".join(f" -chparam {name} {value}" for name, value in self.parameters.items())
        return (
            f"hierarchy{' -check' if check else ''} {'-auto-top' if self.top is None else f'-top {self.top}'}{values}"
        )

    def run(self, folder: Path, lines: Sequence[str], *, timeout: float | None = None, options: Sequence[str] = ()):
        """Run commands in a folder; what is written there and what was said, as of `subprocess.run`.

        Raises
        ------
        TimeoutError
            If it takes longer than `timeout` seconds.
        """
        for number, path in enumerate(self.folders):
            link = Path(folder, f"include{number}")  # -I takes no quotation marks
            if not link.is_symlink():
                link.symlink_to(path)
        Path(folder, "commands.ys").write_text("\n".join(lines) + "\n", encoding="utf-8")
        try:
            return subprocess.run(
                [self.program, *options, "commands.ys"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                encoding="utf-8", errors="replace", stdin=subprocess.DEVNULL, check=False, timeout=timeout,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"{self.where}: Yosys did not finish reading it in {timeout:g} s") from None

    def check_top(self, log: str) -> None:
        """ValueError if no top module was stated and there are several."""
        if self.top is None and (others := other_tops(log)):
            raise ValueError(f"{self.where}: {', '.join(others)} and another module are in no other: state --top")


def _identifier(name: str) -> str:
    """A name as Yosys takes it: a simple identifier of Verilog, or an escaped one, which ends where a blank follows.

    >>> _identifier("mac$1"), _identifier("\\\\foo.bar ")
    ('mac$1', '\\\\foo.bar')
    """
    escaped = name.rstrip(" ") if name.startswith("\\") else name
    if re.fullmatch(r"[A-Za-z_][\w$]*|\\[!-~]*[!-:<-~]", escaped, re.ASCII):
        return escaped
    raise ValueError(
        f"{name!r} is no name of a module or of a parameter: letters, digits, _ and $, or an escaped identifier with "
        r"its backslash, such as '\foo.bar', that does not end in a semicolon (which Yosys does not take)"
    )


def complaints(log: str) -> list[str]:
    """The lines in which Yosys says why it stopped: its errors, or its last words.

    >>> complaints("1. Executing\\nERROR: no such module\\n")
    ['ERROR: no such module']
    """
    lines = log.splitlines()
    return [line for line in lines if "ERROR" in line] or lines[-3:] or ["it ended without a word"]


def other_tops(log: str) -> list[str]:
    """Modules that the chosen one does not have in it, by what Yosys removed; of some it made ones with parameters.

    >>> other_tops("Removing unused module `\\\\tb'.\\nRemoving unused module `$paramod\\\\mac\\\\K=1'.")
    ['tb']
    """
    names = dict.fromkeys(re.findall(r"Removing unused module `\\(\S+)'\.", log))
    return [name for name in names if not re.search(rf"\$paramod(?:\$\w+)?\\{re.escape(name)}(?=[\\'\s]|$)", log)]


def plain_name(name: str) -> str:
    """A module's name without those of its parameters, which Yosys puts behind it.

    >>> plain_name("$paramod\\\\mac\\\\K=1"), plain_name("mac")
    ('mac', 'mac')
    """
    return name.split("\\")[1] if name.startswith("$paramod") else name.lstrip("\\")
