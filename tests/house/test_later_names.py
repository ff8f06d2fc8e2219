"""Names of softnum that are imported when they are first asked for: one table says which, and type checkers read it."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import softnum as sn


def test_the_table_and_the_imports_for_type_checkers_agree():
    tree = ast.parse(Path(sn.__file__).read_text(encoding="utf-8"))
    [block] = [node for node in tree.body if isinstance(node, ast.If)]
    assert {node.module: tuple(alias.name for alias in node.names) for node in block.body} == sn._LATER


def test_names_are_there_and_their_modules_are_not_before():
    code = (
        "import sys, softnum\n"
        "early = [module for module in softnum._LATER if module in sys.modules]\n"
        "assert early == [], early\n"
        "assert set(softnum.__all__) <= set(dir(softnum))\n"
        "assert all(getattr(softnum, name) is getattr(softnum, name) for name in softnum.__all__)\n"
        "from softnum import operator, matmul, tile\n"
        "assert tile.operator is operator"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_no_name_is_the_machinerys():
    assert [name for name in dir(sn) if name.isupper() and not name.startswith("_")] == []


def test_a_name_that_there_is_not():
    with pytest.raises(AttributeError, match="module 'softnum' has no attribute 'matmull'"):
        sn.matmull  # noqa: B018
