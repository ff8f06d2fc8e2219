"""Images of the user's own: which are taken in what order, what a record says of them, and what is refused."""

import hashlib
import os

import numpy as np
import pytest

from softnum.train import Settings, load_design, make_network, run
from softnum.train.datasets.image_folder import read_image_folder
from softnum.train.datasets.sets import data_facts, load_data
from softnum.train.inspect.dry_run import stand_in
from softnum.train.runs.loop import read_rows
from softnum.train.studies.study_file import read_study

Image = pytest.importorskip("PIL.Image", reason="the data set image-folder takes Pillow")

CLASSES = ("cat", "dog", "eel")


def pixels(number, side=4, channels=3):
    """Distinct bytes for each image."""
    shape = (side, side) if channels == 1 else (side, side, channels)
    return (np.arange(int(np.prod(shape)), dtype=np.uint32) * 7 + 31 * number).astype(np.uint8).reshape(shape)


def made(folder, counts=(4, 2, 3), held_out=2, suffix=".png", channels=3):
    """A folder: image n of class c has pixels(100 c + n), held out those from 50 on."""
    for part, numbers in (("train", [range(count) for count in counts]), ("test", [range(50, 50 + held_out)] * 3)):
        for label, (name, these) in enumerate(zip(CLASSES, numbers, strict=True)):
            place = folder / part / name
            place.mkdir(parents=True)
            for number in these:
                Image.fromarray(pixels(100 * label + number, channels=channels)).save(place / f"{number:03}{suffix}")
    return folder


def test_order_labels_and_pixels(tmp_path):
    data = load_data("image-folder", made(tmp_path))
    assert data.classes == CLASSES
    # the first of each class, then the second, ...; a class without more is passed over
    numbers = [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1), (0, 2), (2, 2), (0, 3)]
    assert data.train_y.tolist() == [label for label, _ in numbers] and data.test_y.tolist() == [0, 1, 2, 0, 1, 2]
    expected = [pixels(100 * label + number).transpose(2, 0, 1).ravel() for label, number in numbers]
    assert np.array_equal(data.train_x.codes, expected)
    assert np.array_equal(data.train_x[[8]], np.float32([expected[8]]) / 256)
    assert np.array_equal(data.test_x.codes[0], pixels(50).transpose(2, 0, 1).ravel())


def test_first_samples_are_balanced_and_the_others_are_not_decoded(tmp_path):
    folder = made(tmp_path, counts=(3, 3, 3))
    (folder / "train" / "eel" / "002.png").write_bytes(b"no image")
    data = load_data("image-folder", folder).first(6, 3)
    assert np.bincount(data.train_y).tolist() == [2, 2, 2] and data.train_x.codes.shape == (6, 48)
    with pytest.raises(ValueError, match=r"eel/002\.png: cannot be read as an image"):
        load_data("image-folder", folder).train_x[[0]]
    with pytest.raises(ValueError, match=r"held_out.*must lie in 1\.\.6"):
        data = load_data("image-folder", folder).first(6, 7)


def test_what_a_record_says(tmp_path):
    folder = made(tmp_path)
    facts = load_data("image-folder", folder).first(3, 3).describe()
    names = ["name", "train", "held_out", "classes", "formats", "files_sha256", "sha256"]  # files before pixels
    assert list(facts) == names and facts["formats"] == ["PNG"]  # lossless: no decoder's word counts
    digests = ""
    for part, number in (("train", 0), ("test", 50)):
        digest = hashlib.sha256()
        for name in CLASSES:
            content = (folder / part / name / f"{number:03}.png").read_bytes()
            digest.update(len(content).to_bytes(8, "little") + content)
        digests += digest.hexdigest()
    assert facts["files_sha256"] == hashlib.sha256(digests.encode()).hexdigest()


def test_another_file_of_the_same_pixels_is_told_from_other_pixels(tmp_path):
    folder = made(tmp_path)
    before = load_data("image-folder", folder).describe()
    file = folder / "train" / "cat" / "000.png"
    Image.open(file).save(file, compress_level=0)
    packed = load_data("image-folder", folder).describe()
    assert packed["sha256"] == before["sha256"] and packed["files_sha256"] != before["files_sha256"]
    Image.fromarray(pixels(7)).save(file)
    assert load_data("image-folder", folder).describe()["sha256"] != before["sha256"]


def test_lossy_files_name_their_decoder(tmp_path):
    facts = load_data("image-folder", made(tmp_path, suffix=".jpg")).describe()
    assert facts["formats"] == ["JPEG"] and facts["decoder"].startswith("Pillow ") and "libjpeg" in facts["decoder"]


def test_the_network_has_the_size_of_the_images(tmp_path):
    folder = made(tmp_path, channels=1)
    assert data_facts("image-folder", folder)[:2] == ((1, 4, 4), 3)
    options = make_network("resnet", data="image-folder", data_folder=folder).options
    assert options["image"] == (1, 4, 4) and options["classes"] == 3
    assert stand_in("image-folder", 8, folder=folder).train_x.shape == (8, 16)


def test_a_run_and_the_folder_of_the_environment(tmp_path, monkeypatch):
    folder = made(tmp_path / "images", held_out=1)
    settings = Settings("resnet", {"sizes": (2, 2, 2)}, data="image-folder", batch=3, epochs=1, samples=6)
    monkeypatch.setenv("SOFTNUM_DATA", str(folder))
    rows = read_rows(run(load_design("a-float32"), settings, seed=1, out=tmp_path / "out"))
    assert rows[0]["config"]["data"]["classes"] == list(CLASSES) and rows[-1]["iteration"] == 2


def test_a_study_is_read_without_its_images(tmp_path):
    file = tmp_path / "one.toml"
    file.write_text(
        '[study]\ndesigns = ["a-float32"]\n[[networks]]\nname = "resnet"\ndata = "image-folder"\n'
        'data_folder = "images"\n[networks.options]\nsizes = [2, 2, 2]\n'
    )
    (comparison,) = read_study(file).comparisons
    assert comparison.settings.data_folder == str(tmp_path / "images")
    with pytest.raises(ValueError, match="there is no folder .*images"):
        comparison.settings.make_network()


def image(mode="RGB", size=(4, 4), **save):
    return lambda path: Image.new(mode, size).save(path, **save)


@pytest.mark.parametrize(
    ("file", "write", "error"),
    [
        ("train/dog/000.png", image(size=(5, 4)), "is 5 x 4 in colour, and .*cat/000.png is 4 x 4 in colour"),
        ("test/dog/050.png", image("L"), "is 4 x 4 in grey, and .*is 4 x 4 in colour"),
        ("train/dog/000.png", image("RGBA"), "has an alpha channel"),
        ("train/dog/000.png", image("I;16"), "not of 8 bits"),
        ("train/dog/000.png", image("RGB", transparency=(0, 0, 0)), "transparent"),
        ("train/dog/000.png", lambda path: path.write_bytes(b""), "cannot be read as an image: it is none of"),
        ("train/dog/000.png", lambda path: path.write_bytes(path.read_bytes()[:-30]), "cannot be decoded"),
        ("train/dog/a.ppm", lambda path: path.write_bytes(b"P6 4 4 15\n" + bytes(48)), "not of 8 bits"),
        ("train/dog/a.jpg", image("CMYK"), "is of printing inks"),
        ("train/dog/a.webp", image(save_all=True, append_images=[Image.new("RGB", (4, 4), 9)]), "holds 2 pictures"),
    ],
)  # fmt: skip
def test_images_that_are_refused(file, write, error, tmp_path):
    path = made(tmp_path) / file
    write(path)
    data = load_data("image-folder", tmp_path)
    with pytest.raises(ValueError, match=rf"{path.name}.*{error}|{error}"):
        data.describe()


def removed(path):
    for file in path.iterdir():
        file.unlink()
    path.rmdir()


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda d: (d / "train" / "dog" / "notes.txt").touch(), r"dog/notes\.txt: is no image"),
        (lambda d: (d / "train" / "dog" / "more").mkdir(), "dog/more: is a folder, and classes have none"),
        (lambda d: (d / "train" / "dog" / "more.png").mkdir(), r"dog/more\.png: is no file"),
        (lambda d: (d / "train" / "notes.txt").touch(), r"notes\.txt: is no folder of a class"),
        (lambda d: removed(d / "test" / "dog"), "train/dog' is a class that .*test' has not"),
        (lambda d: (d / "train" / "fox").mkdir(), "train/fox' is a class that"),
        (lambda d: [(d / p / "fox").mkdir() for p in ("train", "test")], "train/fox' has no images"),
        (lambda d: [removed(d / p / c) for p in ("train", "test") for c in ("cat", "dog")], "has one class, 'eel'"),
        (lambda d: (d / "train" / "dog" / "a.png").symlink_to("nowhere.png"), r"a\.png: is a link that leads nowhere"),
        (lambda d: os.link(d / "train" / "dog" / "000.png", d / "test" / "dog" / "a.png"), "is the same file as"),
        (lambda d: (d / "test" / "eel" / "a.png").symlink_to(d / "train" / "eel" / "000.png"), "is the same file as"),
        (lambda d: os.link(d / "train" / "dog" / "000.png", d / "train" / "eel" / "a.png"), "of another class; remove"),
        (lambda d: (d / "test").rename(d / "held-out"), "has no folder test, nor val"),
        (lambda d: (d / "train").rename(d / "training"), "has no folder train"),
        (lambda d: [removed(d / "train" / c) for c in CLASSES], "has no classes"),
    ],
)
def test_folders_that_are_refused(change, error, tmp_path):
    change(made(tmp_path))
    with pytest.raises(ValueError, match=error):
        load_data("image-folder", tmp_path)


def test_links_hidden_files_and_val(tmp_path):
    folder = made(tmp_path / "a")
    (folder / "test").rename(folder / "val")
    (folder / "train" / "cat" / ".DS_Store").touch()
    (folder / "train" / "cat" / "004.png").symlink_to(folder / "train" / "cat" / "003.png")  # twice: the user's choice
    (folder / "train" / "dog").rename(tmp_path / "dogs")
    (folder / "train" / "dog").symlink_to(tmp_path / "dogs")
    classes, image, train, held_out = read_image_folder(folder)
    assert (classes, image, len(train.files), len(held_out.files)) == (CLASSES, (3, 4, 4), 10, 6)


def test_no_folder(monkeypatch):
    monkeypatch.delenv("SOFTNUM_DATA", raising=False)
    with pytest.raises(ValueError, match="none was given; name it with --data-dir"):
        load_data("image-folder")
    with pytest.raises(ValueError, match="there is no folder '/nowhere'"):
        make_network("resnet", data="image-folder", data_folder="/nowhere")
