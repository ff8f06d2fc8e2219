"""Packs wheels anew: the same files are the same bytes whenever they are packed, compressed as far as zlib does.

A wheel above the limit is an error that says what takes the room: ``python .ci/pack.py WHEEL... --to dist --limit 6``.
"""

import argparse
import hashlib
import sys
import zipfile
from collections import Counter
from pathlib import Path

EARLIEST = (1980, 1, 1, 0, 0, 0)  # that a zip file can say: times are no part of a wheel's content


def pack(source, target):
    """Writes `source` as `target`: names in order (those of .dist-info last, as wheels ask), times and rights alike."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for info in sorted(old.infolist(), key=lambda i: (".dist-info/" in i.filename, i.filename)):
            entry = zipfile.ZipInfo(info.filename, EARLIEST)
            entry.create_system = 3  # Unix, wherever it is packed
            entry.external_attr = (0o100755 if info.filename.endswith(".so") else 0o100644) << 16
            new.writestr(entry, old.read(info), zipfile.ZIP_DEFLATED, compresslevel=9)
    return target


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("wheels", nargs="+", type=Path, metavar="WHEEL")
    parser.add_argument("--to", type=Path, default=Path("dist"), help="the folder for the wheels (dist)")
    parser.add_argument("--limit", type=float, required=True, help="the largest size, in millions of bytes")
    options = parser.parse_args()
    options.to.mkdir(parents=True, exist_ok=True)
    for wheel in options.wheels:
        packed = pack(wheel, options.to / wheel.name)
        size = packed.stat().st_size
        print(f"{packed}: {size:,} bytes, sha256 {hashlib.sha256(packed.read_bytes()).hexdigest()}")
        if size > options.limit * 1e6:
            with zipfile.ZipFile(packed) as parts:
                kinds = Counter()
                for info in parts.infolist():
                    kinds[Path(info.filename).suffix or info.filename.rpartition("/")[2]] += info.compress_size
                largest = sorted(parts.infolist(), key=lambda i: -i.compress_size)[:5]
            packed.unlink()
            room = ", ".join(f"{kind} {size:,}" for kind, size in kinds.most_common(5))
            files = ", ".join(f"{i.filename} {i.compress_size:,}" for i in largest)
            sys.exit(
                f"{wheel.name} has {size:,} bytes, and the limit is {options.limit:g} million. By kind: {room}. "
                f"The largest: {files}. Make what is new smaller, leave it out of the wheel (package-data in "
                "pyproject.toml), or raise the limit in the Makefile"
            )


if __name__ == "__main__":
    main()
