"""softnum.save and softnum.load: what is written comes back; what is foreign, cut or damaged is refused."""

import io
import json
import os
import stat
import zipfile

import numpy as np
import pytest

import softnum as sn

TABLE = sn.CustomFormat.from_table([0.0, 0.1, float("nan"), -1e300], name="table")
FORMATS = [
    *sn.format_names(), "q4.4", "uq0.8", "q1.63", "q10.-2", "uq-2.10",
    "e15m48", "binary8p3se", "binary8p3uf", "binary16p8ue", TABLE,
    sn.CustomFormat.from_table(np.linspace(-1, 1, 65536), name="wide"),
    sn.FloatFormat(4, 3, bias=-300, signed=False, specials="none", lowest_binade="zero", name="my format"),
    sn.FloatFormat(5, 6, nan_codes="all_ones", infinities=True, negative_zero=False, name='"quoted"\n\x00'),
]  # fmt: skip


def some_array(fmt, shape=(3, 5)):
    fmt = sn.format(fmt)
    rng = np.random.Generator(np.random.Philox(5))
    return sn.Array(rng.integers(0, 2**64, shape, dtype=np.uint64) >> np.uint64(max(64 - fmt.bits, 0)), fmt)


def same(a, b):
    return a.format == b.format and a.format.name == b.format.name and np.array_equal(a.codes, b.codes)


@pytest.mark.parametrize("fmt", FORMATS, ids=lambda f: getattr(f, "name", f).split("\n")[0])
def test_every_format_comes_back(fmt, tmp_path):
    path = tmp_path / "a.npz"
    a = some_array(fmt)
    sn.save(path, a)
    again = sn.load(path)
    assert isinstance(again, sn.Array) and same(again, a) and again.codes.dtype == a.format.storage_dtype
    again[0] = again[1]


def test_named_arrays_and_shapes(tmp_path):
    path = tmp_path / "no ending"
    arrays = {
        "w": some_array("e5m2"), "": some_array("q4.4", ()), "softnum": some_array("binary16", (0, 3)),
        "../x/y\\\u00e9\x00": some_array("e2m1fn", (2, 1, 3)).T, "codes0": some_array(TABLE)[:, ::-2],
    }  # fmt: skip
    sn.save(path, arrays)
    again = sn.load(str(path))
    assert list(again) == list(arrays) and all(
        same(again[k], v) and again[k].shape == v.shape for k, v in arrays.items()
    )
    assert os.listdir(tmp_path) == ["no ending"]
    with np.load(path) as archive:
        assert np.array_equal(archive["codes0"], arrays["w"].codes)
        assert json.loads(archive["softnum"].tobytes())["arrays"][0]["format"]["name"] == "e5m2"
    first = path.read_bytes()
    sn.save(path, arrays)
    assert path.read_bytes() == first
    sn.save(path, {})
    assert sn.load(path) == {}


def test_other_things_are_refused(tmp_path):
    path = tmp_path / "a.npz"
    a = some_array("e5m2")
    for thing, what in [
        (a.codes, "ndarray"), ([a], "list"), (None, "NoneType"), ({"a": a.codes}, "a dict with 'a': ndarray"),
        ({1: a}, "a dict with 1: Array"), ({None: a}, "a dict with None: Array"),
    ]:  # fmt: skip
        with pytest.raises(TypeError, match=f"save takes an Array, or a dict of str to Array, got {what}$"):
            sn.save(path, thing)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        sn.save(tmp_path / "nowhere" / "a.npz", a)
    with pytest.raises(FileNotFoundError):
        sn.load(path)
    assert not os.listdir(tmp_path)


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.npz"
    a = some_array("e5m2")
    sn.save(path, a)
    before = path.read_bytes()

    def fail(file, **members):
        file.write(b"half")
        raise OSError("the disk is full")

    monkeypatch.setattr(np, "savez", fail)
    with pytest.raises(OSError, match="disk is full"):
        sn.save(path, some_array("e4m3fn"))
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["a.npz"]


@pytest.mark.skipif(os.name != "posix", reason="POSIX permissions and links")
def test_permissions_and_links_are_kept(tmp_path):
    real, link = tmp_path / "real.npz", tmp_path / "link.npz"
    link.symlink_to(real)
    mask = os.umask(0o027)
    try:
        sn.save(link, some_array("e5m2"))
    finally:
        os.umask(mask)
    assert link.is_symlink() and stat.S_IMODE(real.stat().st_mode) == 0o640


def _archive(**members):
    file = io.BytesIO()
    np.savez(file, **members)
    return file.getvalue()


def _description(**entries):
    return np.frombuffer(json.dumps(entries).encode(), np.uint8)


E5M2 = {"kind": "float", "exponent_bits": 5, "mantissa_bits": 2, "name": "e5m2"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a complete file of softnum.save"),
        (b"not a zip archive", r"not a complete file of softnum.save \(File is not a zip file\)"),
        (_archive(x=np.zeros(3)), "not written by softnum.save"),
        (_archive(softnum=_description(version=2, arrays=[])), "written as version 2; this softnum reads version 1"),
        (_archive(softnum=_description(arrays=[])), "not a complete file .*version"),
        (_archive(softnum=np.zeros(3)), "not a complete file of softnum.save"),
        (_archive(softnum=_description(version=1, arrays=[{"name": None, "format": E5M2}])), "codes0.npy"),
        (_archive(softnum=_description(version=1, arrays=[{"name": None, "format": E5M2}]), codes0=np.zeros(2)),
         "encodings of e5m2 are uint8, not float64"),
        (_archive(softnum=_description(version=1, arrays=[{"name": None, "format": {**E5M2, "exponent_bits": 3}}]),
                  codes0=np.array([255], np.uint8)), "255 is no code of e5m2"),
        (_archive(softnum=_description(version=1, arrays=[{"name": None, "format": {"kind": "decimal"}}])), "decimal"),
        (_archive(softnum=_description(version=1, arrays=[{"name": None, "format": {**E5M2, "base": 16}}])), "base"),
        (_archive(softnum=_description(version=1, arrays=[{"name": None, "format": {**E5M2, "mantissa_bits": 99}}])),
         "mantissa_bits must lie in 0..61, got 99"),
        (_archive(softnum=_description(version=1, arrays=[{"name": None, "format": "__import__('os')"}])), "not a"),
    ],
)  # fmt: skip
def test_foreign_files_are_refused(content, message, tmp_path):
    path = tmp_path / "a.npz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"a\.npz: .*{message}"):
        sn.load(path)


def test_pickles_are_not_read(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, softnum=_description(version=1, arrays=[{"name": None, "format": E5M2}]),
             codes0=np.array([print], object))  # fmt: skip
    with pytest.raises(ValueError, match="allow_pickle=False"):
        sn.load(path)


def test_damaged_files_are_refused(tmp_path):
    """Every byte changed, every length cut: the same arrays come back, or ValueError."""
    path, damaged = tmp_path / "a.npz", tmp_path / "b.npz"
    a = some_array("e5m2")
    sn.save(path, a)
    whole = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        data_at = whole.index(archive.read("codes0.npy")) + 128
    refused = 0
    for at in range(len(whole)):
        for content in ([] if at % 4 else [whole[:at]]) + [whole[:at] + bytes([whole[at] ^ 0x41]) + whole[at + 1 :]]:
            damaged.write_bytes(content)
            try:
                assert same(sn.load(damaged), a), at
            except ValueError as error:
                assert "not a complete file of softnum.save" in str(error) or "not written by softnum.save" in str(
                    error
                ), at
                refused += 1
                continue
            assert not data_at <= at < data_at + a.size
    assert refused > 0.9 * len(whole)


def _npy(header: bytes, content: bytes = b"") -> bytes:
    padded = header.ljust(118 - 1) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded + content


def test_files_that_grow_are_refused_before_they_are_read(tmp_path):
    """Compressed members, members that overlap, and headers that promise terabytes: no memory is taken for them."""
    import resource

    whole = tmp_path / "whole.npz"
    sn.save(whole, sn.array(np.zeros(1000), "e5m2"))
    with zipfile.ZipFile(whole) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}

    def refused(path, message):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with pytest.raises(ValueError, match=message):
            sn.load(path)
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < before + 50_000  # KB

    bomb = tmp_path / "bomb.npz"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("softnum.npy", members["softnum.npy"])
        with archive.open("codes0.npy", "w") as file:
            file.write(_npy(b"{'descr': '|u1', 'fortran_order': False, 'shape': (800000000,), }"))
            for _ in range(100):
                file.write(bytes(8_000_000))
    assert bomb.stat().st_size < 1_000_000
    refused(bomb, "not a complete file of softnum.save .a member is compressed")

    for shape in (
        "(1000000000000,)",
        "(2**40,)",
        "(1000000, 1000000, 1000000)",
        "(999,)",
        "(1001,)",
        "(-1000,)",
    ):
        lying = tmp_path / "lying.npz"
        with zipfile.ZipFile(lying, "w") as archive:
            archive.writestr("softnum.npy", members["softnum.npy"])
            header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}".encode()
            archive.writestr("codes0.npy", _npy(header, bytes(1000)))
        refused(lying, "not a complete file of softnum.save")

    overlap = tmp_path / "overlap.npz"  # one stored member, listed again and again
    with zipfile.ZipFile(overlap, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        for i in range(1, 50):
            again = zipfile.ZipInfo(f"codes{i}.npy")
            known = archive.getinfo("codes0.npy")
            again.header_offset, again.file_size = known.header_offset, known.file_size
            again.compress_size, again.CRC = known.compress_size, known.CRC
            archive.filelist.append(again)
        archive._didModify = True
    refused(overlap, "not a complete file of softnum.save .its members overlap")


@pytest.mark.parametrize("entry", [
    {"format": {"kind": "table", "name": "x", "values": ["0x0p0"] * 3}}, {"format": {"kind": "nosuch"}},
    {"format": {"kind": "float", "exponent_bits": 10**9, "mantissa_bits": 2}}, {"format": [[[]]]}, {"format": None},
])  # fmt: skip
def test_formats_that_are_none_are_refused(entry, tmp_path):
    path = tmp_path / "x.npz"
    text = json.dumps({"version": 1, "arrays": [{"name": None, **entry}]})
    np.savez(path, softnum=np.frombuffer(text.encode(), np.uint8), codes0=np.zeros(2, np.uint8))
    with pytest.raises(ValueError, match=r"not a complete file of softnum.save"):
        sn.load(path)
    deep = b"[" * 200_000
    np.savez(path, softnum=np.frombuffer(deep, np.uint8))
    with pytest.raises(ValueError, match=r"not a complete file of softnum.save"):
        sn.load(path)
