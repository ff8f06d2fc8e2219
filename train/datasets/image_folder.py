"""Images of the user's own in the layout that most tools take: a folder for each class, PNG, JPEG and others in it.

A part to train on, ``train``, and one held out, ``test`` (or ``val``, where there is no ``test``)::

    train/cat/0001.png   train/cat/0002.png   train/dog/0001.png   ...
    test/cat/0001.png    test/dog/0001.png    ...

Classes are numbered in the order of their names, files in a class are taken in that of theirs (both by code points, so
that 10.png comes before 9.png), and a part's order is the first file of each class, then the second of each, and so on:
whatever number of first samples is taken, classes differ by one at most, as long as each has files left.

Pillow decodes. Of a lossless file (PNG, BMP, PPM) every decoder makes the same pixels; of a JPEG or WebP another
version may make others, by a unit in the last place. So a record holds three things: a digest of the files, the decoder
where a file is lossy, and a digest of the pixels, which is what the numbers of a run follow from.
"""

from __future__ import annotations

import functools
import hashlib
import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from softnum.train.datasets.pixels import Pixels

__all__ = ["LOSSLESS", "NAME", "FilePixels", "ImagePart", "decoder", "look_at", "read_image_folder"]

NAME = "image-folder"
_FORMATS = ("PNG", "JPEG", "BMP", "PPM", "WEBP")
_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".pgm", ".ppm", ".webp")
#: formats of which every decoder makes the same pixels
LOSSLESS = frozenset({"PNG", "BMP", "PPM"})
_CHANNELS = {"1": 1, "L": 1, "RGB": 3, "P": 3}
_MODES = {
    "CMYK": "is of printing inks", "LA": "has an alpha channel", "PA": "has an alpha channel",
    "RGBA": "has an alpha channel",
}  # fmt: skip
_COLOURS = {1: "grey", 3: "colour"}
_LAYOUT = "it takes train/<class>/*.png and test/<class>/*.png (or val/), also .jpg and others"


class ImageFile(NamedTuple):
    """An image's file: its path, what tells it from others, and what changes when it does."""

    path: str
    identity: tuple[int, int]
    state: tuple[int, int]


class ImagePart(NamedTuple):
    """One part of a folder: its files in their order, and the number of the class of each."""

    files: tuple[ImageFile, ...]
    labels: np.ndarray


class FilePixels(Pixels):
    """Images in files, which are decoded when their bytes are first asked for.

    Parameters
    ----------
    files : sequence of ImageFile
    image : (int, int, int)
        Channels, height and width, which each has to have.
    like : str
        The file that has them, for errors.
    """

    def __init__(self, files: Sequence[ImageFile], image: tuple[int, int, int], like: str) -> None:
        self.files, self.image, self.like = tuple(files), image, like

    @property
    def shape(self) -> tuple[int, int]:
        """(samples, features)"""
        return len(self.files), int(np.prod(self.image))

    @property
    def codes(self) -> np.ndarray:
        """The images' bytes in the order (channel, row, column): uint8 (samples, features)."""
        return _decoded(self.files, self.image, self.like).codes

    def first(self, count: int) -> FilePixels:
        """The first so many images; the others are not decoded."""
        return FilePixels(self.files[:count], self.image, self.like)

    def describe(self) -> tuple[str, set[str]]:
        """SHA-256 of the files' bytes, each after their number, and the files' formats."""
        found = _decoded(self.files, self.image, self.like)
        return found.digest, set(found.formats)


class _Decoded(NamedTuple):
    codes: np.ndarray
    digest: str
    formats: frozenset[str]


def _pillow():
    """Pillow's module Image."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ValueError(
            f"the data set {NAME!r} takes Pillow, which is not installed: pip install 'softnum[train]'"
        ) from error
    return Image


def decoder(formats: Sequence[str]) -> str:
    """What decodes files of some formats, with versions, for a record."""
    _pillow()
    import PIL
    from PIL import features

    turbo = features.version("libjpeg_turbo")
    libraries = {
        "JPEG": f"libjpeg-turbo {turbo}" if turbo else f"libjpeg {features.version('jpg')}",
        "WEBP": f"libwebp {features.version('webp')}",
    }
    return ", ".join([f"Pillow {PIL.__version__}", *(libraries[name] for name in formats if name in libraries)])


def _open(path: str):
    """A file's bytes and the image in them, with its size; nothing is decoded yet."""
    pillow = _pillow()
    try:
        content = Path(path).read_bytes()
        image = pillow.open(io.BytesIO(content), formats=_FORMATS)
    except pillow.UnidentifiedImageError as error:
        raise ValueError(f"{path}: cannot be read as an image: it is none of {', '.join(_FORMATS)}") from error
    except Exception as error:  # Pillow's readers raise whatever their files make them
        raise ValueError(f"{path}: cannot be read as an image: {_short(error)}") from error
    count = getattr(image, "n_frames", 1)
    if count != 1:
        raise ValueError(f"{path}: holds {count} pictures, and a sample is one; leave one of them in it")
    if "transparency" in image.info:
        raise ValueError(f"{path}: has transparent pixels; lay it on a background first")
    if any(";16" in str(tile[3]) or (tile[0] == "ppm" and tile[3][1] != 255) for tile in image.tile):
        raise ValueError(f"{path}: its pixels are not of 8 bits, and would be rounded to them; convert it first")
    if image.mode not in _CHANNELS:
        why = _MODES.get(image.mode, f"has pixels of the kind {image.mode}, not of bytes")
        raise ValueError(f"{path}: {why}; a sample is grey or red, green and blue, in bytes: convert it first")
    return content, image, (_CHANNELS[image.mode], image.height, image.width)


def _short(error: Exception) -> str:
    return str(error) or type(error).__name__


@functools.lru_cache(maxsize=2)  # the parts of the set in use; a file that changes is another key
def _decoded(files: tuple[ImageFile, ...], image: tuple[int, int, int], like: str) -> _Decoded:
    codes = np.empty((len(files), int(np.prod(image))), np.uint8)
    digest, formats = hashlib.sha256(), set()
    for file, code in zip(files, codes, strict=True):
        content, picture, found = _open(file.path)
        if found != image:
            raise ValueError(
                f"{file.path}: is {_size(found)}, and {like} is {_size(image)}; all images must be alike: make them so "
                "first"
            )
        try:
            pixels = np.asarray(picture.convert("RGB" if image[0] == 3 else "L"))
        except Exception as error:  # as above
            raise ValueError(f"{file.path}: cannot be decoded: {_short(error)}") from error
        code[:] = pixels.transpose(2, 0, 1).ravel() if image[0] == 3 else pixels.ravel()
        digest.update(len(content).to_bytes(8, "little") + content)
        formats.add(picture.format)
    codes.flags.writeable = False
    return _Decoded(codes, digest.hexdigest(), frozenset(formats))


def _size(image: tuple[int, int, int]) -> str:
    return f"{image[2]} x {image[1]} in {_COLOURS[image[0]]}"


def _entries(folder: Path) -> list[os.DirEntry]:
    """What lies in a folder, by name, but for hidden files."""
    try:
        with os.scandir(folder) as found:
            return sorted((entry for entry in found if not entry.name.startswith(".")), key=lambda entry: entry.name)
    except OSError as error:
        raise ValueError(f"{folder}: cannot be read: {error.strerror}") from error


def _parts(folder: Path | None) -> tuple[Path, Path]:
    """The folders to train on and held out."""
    if folder is None:
        raise ValueError(
            f"the data set {NAME!r} is a folder of your own, and none was given; name it with --data-dir, in "
            f"load_data({NAME!r}, folder), or in the environment variable SOFTNUM_DATA: {_LAYOUT}"
        )
    if not folder.is_dir():
        raise ValueError(f"there is no folder {str(folder)!r} for the data set {NAME!r}: {_LAYOUT}")
    held_out = next((folder / name for name in ("test", "val") if (folder / name).is_dir()), None)
    for path, name in ((folder / "train", "train"), (held_out, "test, nor val")):
        if path is None or not path.is_dir():
            raise ValueError(f"{str(folder)!r} has no folder {name}, so it is no {NAME}: {_LAYOUT}")
    return folder / "train", held_out


def _classes(part: Path) -> list[str]:
    """The names of a part's classes."""
    entries = _entries(part)
    for entry in entries:
        if not entry.is_dir():
            raise ValueError(f"{entry.path}: is no folder of a class; move it out of {str(part)!r}")
    names = [entry.name for entry in entries]
    if len(names) < 2:
        found = f"one class, {names[0]!r}" if names else "no classes"
        raise ValueError(f"{str(part)!r} has {found}, and there is nothing to tell apart: {_LAYOUT}")
    return names


def _files(folder: Path) -> list[ImageFile]:
    """The images of a class."""
    found = []
    for entry in _entries(folder):
        if not entry.name.lower().endswith(_SUFFIXES):
            what = "a folder, and classes have none" if entry.is_dir() else f"no image ({', '.join(_SUFFIXES)})"
            raise ValueError(f"{entry.path}: is {what}; move it out of {str(folder)!r}")
        try:
            facts = entry.stat()  # of what a link leads to
        except OSError as error:
            what = "is a link that leads nowhere" if entry.is_symlink() else f"cannot be read: {error.strerror}"
            raise ValueError(f"{entry.path}: {what}") from error
        if not entry.is_file():
            raise ValueError(f"{entry.path}: is no file; move it out of {str(folder)!r}")
        found.append(ImageFile(entry.path, (facts.st_dev, facts.st_ino), (facts.st_size, facts.st_mtime_ns)))
    if not found:
        raise ValueError(f"{str(folder)!r} has no images; remove the folder in train and held out, or fill it")
    return found


def _part(folder: Path, classes: list[str]) -> ImagePart:
    """A part's files: the first of each class, then the second of each, ..."""
    files = [_files(folder / name) for name in classes]
    order = sorted((rank, label) for label, these in enumerate(files) for rank in range(len(these)))
    seen: dict[tuple[int, int], tuple[int, str]] = {}
    for label, these in enumerate(files):
        for file in these:
            other, path = seen.setdefault(file.identity, (label, file.path))
            if other != label:
                raise ValueError(f"{file.path}: is the same file as {path}, of another class; remove one of them")
    labels = np.array([label for _, label in order], np.int64)
    return ImagePart(tuple(files[label][rank] for rank, label in order), labels)


def look_at(folder: Path | None) -> tuple[tuple[int, int, int], int]:
    """What a folder says of its samples without decoding them: (channels, height, width) and the number of classes.

    Raises
    ------
    ValueError
        If it is no such folder, or its first image cannot be read.
    """
    train, _ = _parts(folder)
    classes = _classes(train)
    _, _, image = _open(_files(train / classes[0])[0].path)
    return image, len(classes)


def read_image_folder(folder: Path | None) -> tuple[tuple[str, ...], tuple[int, int, int], ImagePart, ImagePart]:
    """What lies in a folder of images; none but the first is opened.

    Parameters
    ----------
    folder : pathlib.Path
        With ``train`` and ``test`` (or ``val``) in it.

    Returns
    -------
    classes, image, train, held_out : tuple of str, (channels, height, width), ImagePart, ImagePart

    Raises
    ------
    ValueError
        If it has not this layout, a class is in one part alone or without images, something else lies in a class's
        folder, a link leads nowhere, or one file is in both parts, or in two classes.
    """
    image, _ = look_at(folder)
    train, held_out = _parts(folder)
    classes = _classes(train)
    others = _classes(held_out)
    if others != classes:
        name = sorted(set(classes) ^ set(others))[0]
        there, lacks = (train, held_out) if name in classes else (held_out, train)
        raise ValueError(f"{str(there / name)!r} is a class that {str(lacks)!r} has not; both parts need the same ones")
    parts = [_part(place, classes) for place in (train, held_out)]
    seen = {file.identity: file.path for file in parts[0].files}
    for file in parts[1].files:
        if file.identity in seen:
            raise ValueError(
                f"{file.path}: is the same file as {seen[file.identity]}; what is trained on cannot be held out"
            )
    return tuple(classes), image, *parts
