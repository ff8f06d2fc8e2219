"""What SECURITY.md and the threat model say: what runs code, what is unpickled, and what malformed files do."""

import ast
import functools
import re
import warnings
from pathlib import Path

import pytest

from tests.support.cases import cases
from tests.support.file_readers import MALFORMED, READERS, reader

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted({file.resolve() for name in ("softnum", "train", "kernels") for file in (ROOT / name).rglob("*.py")})
PAGE = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")

#: what makes objects of bytes, and the keyword by which it makes plain data alone
_UNPICKLING = {
    "pickle.load": None, "pickle.loads": None, "pickle.Unpickler": None, "marshal.load": None, "marshal.loads": None,
    "shelve.open": None, "dill.load": None, "dill.loads": None, "cloudpickle.load": None, "cloudpickle.loads": None,
    "joblib.load": None, "pandas.read_pickle": None, "numpy.load": ("allow_pickle", False),
    "numpy.lib.format.read_array": ("allow_pickle", False), "torch.load": ("weights_only", True),
    "yaml.load": None, "yaml.unsafe_load": None, "yaml.full_load": None,
}  # fmt: skip
_EXECUTING = ("eval", "exec")
#: where it is done all the same
UNPICKLED = {("kernels/host/cache.py", "pickle.loads"), ("softnum/tta/workloads/energy_files.py", "yaml.load")}
EXECUTED = {
    ("train/designs/objects.py", "exec"), ("kernels/host/contractions.py", "exec"),
    ("kernels/host/elementwise.py", "exec"),
}  # fmt: skip
_NAMES = {"np": "numpy"}
#: files without these words have no such call
_WORDS = re.compile(r"pickle|marshal|shelve|dill|joblib|\bload\(|read_array|yaml|\beval\(|\bexec\(")


@functools.cache
def found_calls() -> dict[str, list]:
    """File -> its calls, where it may have one of those."""
    texts = {file.relative_to(ROOT).as_posix(): file.read_text("utf-8") for file in SOURCES}
    return {name: [*calls(text)] for name, text in texts.items() if _WORDS.search(text)}


def calls(text: str):
    """(dotted name, keywords) of each call of a module whose function has one."""
    tree = ast.parse(text)
    names = dict(_NAMES)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.asname or alias.name: alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            first, *rest = ast.unparse(node.func).split(".")
            keywords = {word.arg: word.value.value for word in node.keywords if isinstance(word.value, ast.Constant)}
            yield ".".join((names.get(first, first), *rest)), keywords


def unpickling(listed) -> list[str]:
    """Calls that may make objects of what they read."""
    found = []
    for name, keywords in listed:
        if name in _UNPICKLING:
            plain = _UNPICKLING[name]
            if plain is None or keywords.get(plain[0]) is not plain[1]:
                found.append(name)
    return found


def test_nothing_is_unpickled_but_what_softnum_sealed():
    found = {(file, name) for file, listed in found_calls().items() for name in unpickling(listed)}
    assert len(SOURCES) > 400 and found == UNPICKLED
    assert "unsealed(" in (ROOT / "kernels/host/cache.py").read_text("utf-8")
    text = (ROOT / "softnum/tta/workloads/energy_files.py").read_text("utf-8")
    assert re.findall(r"yaml\.load\((.*)\)$", text, re.MULTILINE) == [
        'Path(file).read_bytes(), getattr(yaml, "CSafeLoader", yaml.SafeLoader)'
    ]


def test_what_would_be_found():
    for text in ("import pickle as p\np.loads(x)", "from pickle import load\nload(x)", "import numpy as np\nnp.load(f)",
                 "import torch\ntorch.load(f, weights_only=False)", "np.lib.format.read_array(f)"):  # fmt: skip
        assert len(unpickling(calls(text))) == 1, text
    for text in ("np.load(f, allow_pickle=False)", "import torch\ntorch.load(f, weights_only=True)", "json.loads(x)"):
        assert unpickling(calls(text)) == [], text


def test_what_executes_text():
    found = {(file, name) for file, listed in found_calls().items() for name, _ in listed if name in _EXECUTING}
    assert found == EXECUTED
    assert all(f"`{file}`" in PAGE for file, _ in found | UNPICKLED)


def test_the_page_has_each_reader():
    rows = re.findall(r"^\| `(softnum[\w.]+)`", PAGE, re.MULTILINE)
    assert sorted(rows) == sorted(READERS)
    for test in set(re.findall(r"`(tests/[\w/]+\.py)`", PAGE)) | set(re.findall(r"`(fuzz/\w+\.py)`", PAGE)):
        assert (ROOT / test).is_file(), test


@cases("name", READERS)
def test_malformed_files(name, tmp_path, monkeypatch):
    """They are refused by ValueError or OSError, or are nothing; none runs or reads something else."""
    read = reader(name)
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "file.toml"
    for what, content in MALFORMED.items():
        file.write_bytes(content)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                taken = read(file)
            except (ValueError, OSError) as error:
                assert str(error)
                continue
        assert not taken or what == "empty", (what, taken)
        assert [path.name for path in tmp_path.iterdir()] == ["file.toml"], what
    for path in (tmp_path, tmp_path / "none.toml"):
        with pytest.raises((ValueError, OSError)):
            read(path)
