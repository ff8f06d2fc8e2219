"""How the verbs of ``softnum rtl`` take a design in Verilog: its top module, parameters, and what ports are."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["DesignOptions", "numbers_of", "pairs_of"]


@dataclass(frozen=True)
class DesignOptions:
    """Options of a command, beside the files of the design."""

    top: Annotated[
        str | None,
        typer.Option(
            help=r"The top module; an escaped identifier as in Verilog, '\foo.bar'.  [default: the one that none "
            "instantiates]"
        ),
    ] = None
    parameter: Annotated[
        list[str] | None, typer.Option("--parameter", "-P", help="NAME=VALUE of the module; may be given again.")
    ] = None
    include: Annotated[
        list[Path] | None, typer.Option("--include", "-I", help="Folder of included files; may be given again.")
    ] = None

    def given(self) -> dict:
        """Them as keywords: top, parameters and include.

        Raises
        ------
        ValueError
            If a parameter is not NAME=VALUE with a whole number, or one is given twice.
        """
        parameters = numbers_of("--parameter", self.parameter)
        return {"top": self.top, "parameters": parameters, "include": self.include or ()}


def pairs_of(option: str, texts: list[str] | None, what: str = "NAME=VALUE", *, commas: bool = False) -> dict[str, str]:
    """What stands before and after the equals sign of an option that may be given again; ValueError for other texts.

    >>> pairs_of("--port", ["a=x,b=word[7:0]"], commas=True)
    {'a': 'x', 'b': 'word[7:0]'}
    """
    found: dict[str, str] = {}
    for text in (part for whole in texts or () for part in (whole.split(",") if commas else [whole])):
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (name and equals and value) or re.search(r"\s", name + value):
            raise ValueError(
                f"{option} must be {what}{', with commas between several' if commas else ''}, got {text!r}"
            )
        if name in found:
            raise ValueError(f"{option} {name} is given twice; give it once")
        found[name] = value
    return found


def numbers_of(
    option: str, texts: list[str] | None, what: str = "NAME=VALUE", *, commas: bool = False, words: tuple[str, ...] = ()
) -> dict:  # fmt: skip
    """The same with whole numbers behind the equals signs, or one of some words.

    >>> numbers_of("--tie", ["enable=1", "mode=any"], words=("any",)), numbers_of("--parameter", ["N=0x1F"])
    ({'enable': 1, 'mode': 'any'}, {'N': 31})
    """
    numbers: dict = {}
    for name, text in pairs_of(option, texts, what, commas=commas).items():
        if text not in words and not re.fullmatch(r"-?(\d+|0x[\da-fA-F]+|0b[01]+)", text, re.ASCII):
            raise ValueError(f"{option} {name} must be a whole number (12, 0x1F, 0b101), got {text!r}")
        numbers[name] = text if text in words else int(text, 10 if text.lstrip("-").isdecimal() else 0)
    return numbers
