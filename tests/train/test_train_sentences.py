"""Pairs of sentences: what is read, left out, held out and numbered, and what is refused."""

import numpy as np
import pytest

from softnum.train.datasets.sentences import END, PADDING, START, STEPS, UNKNOWN, WORDS, tokens
from softnum.train.datasets.sets import load_data

DICTIONARY = """\
# Version :: of tests | # :: #
Haus {n} | Häuser {pl} | Das ist ein Haus. | Das Haus brennt! :: house | houses | This is a house. | The house burns!
gehen; laufen | Gehst du heute (nach Hause)? | Gehst du? :: to go | Are you going (home) today? | Do you go?
ohne Gegenstück | Er kam. :: without
so ein Satz. | Ja. | Er kam und ging. :: such a sentence. | Yes. | He came and went.
"""


def words_of(data, part):
    x, y = (data.train_x, data.train_y) if part == "train" else (data.test_x, data.test_y)
    german = [[data.source_words[k] for k in row if k != PADDING] for row in x[:, :STEPS]]
    return list(zip(german, [[data.target_words[k] for k in row if k != PADDING] for row in y], strict=True))


def table(tmp_path, lines):
    file = tmp_path / "mine.tsv"
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return file


def test_words_are_cut_in_one_way():
    assert tokens("  Geht\u2019s dir gut , ja?!") == ["geht's", "dir", "gut", ",", "ja", "?", "!"]
    assert tokens("A\u0308RGER \u2013 U-Boot 3,5%") == ["ärger", "\u2013", "u", "-", "boot", "3", ",", "5", "%"]
    assert tokens(" \t") == []


def test_sentences_are_found_in_a_dictionary(tmp_path):
    numbered = "".join(f"Er hat {n} Katzen. :: He has {n} cats.\n" for n in range(8))
    (tmp_path / "de-en").write_text(DICTIONARY + numbered, encoding="utf-8")
    data = load_data("de-en", tmp_path)
    train, held_out = words_of(data, "train"), words_of(data, "test")
    found = [(" ".join(german[:-1]), " ".join(english[:-1])) for german, english in train]
    assert found[:4] == [
        ("das ist ein haus .", "this is a house ."), ("das haus brennt !", "the house burns !"),
        ("gehst du ?", "do you go ?"), ("er kam und ging .", "he came and went ."),
    ]  # fmt: skip
    assert len(found) == 4 + 7 and all(german[-1] == english[-1] == "<end>" for german, english in train + held_out)
    # the tenth line with a sentence; its number is not among those that are trained on
    assert held_out == [(["er", "hat", "<unk>", "katzen", ".", "<end>"], ["he", "has", "<unk>", "cats", ".", "<end>"])]


def test_a_table_is_read_left_out_held_out_and_numbered(tmp_path):
    lines = [f"wort{n} b\tx word{n}\tsource {n}" for n in range(25)]
    lines[3] = "WORT2 B\tanother word for it"  # of an earlier one
    lines[4] = "a " * STEPS + "\tlong"
    lines[5] = "a " * (STEPS - 1) + "\t" + "b " * (STEPS - 1)
    lines[6] = "\tno words"
    data = load_data("de-en", table(tmp_path, ["", *lines, ""]))
    train, held_out = words_of(data, "train"), words_of(data, "test")
    assert len(train) == 20 and len(held_out) == 2
    assert [german[0] for german, _ in held_out] == ["<unk>", "<unk>"]  # wort12 and wort22
    assert (["a"] * (STEPS - 1) + ["<end>"], ["b"] * (STEPS - 1) + ["<end>"]) in train
    assert data.source_words[:6] == ("<pad>", "<unk>", "<start>", "<end>", "b", "a")
    assert data.source_words[6:9] == ("wort0", "wort1", "wort10")  # equals in the order of their code points
    assert "word12" not in data.target_words and "another" not in data.target_words
    decoder, labels = data.train_x[:, STEPS:], data.train_y
    assert (decoder[:, 0] == START).all()
    for row, label in zip(decoder, labels, strict=True):
        length = int(np.flatnonzero(label == END)[0]) + 1
        assert np.array_equal(row[1:length], label[: length - 1]) and not row[length:].any()
        assert not label[length:].any()


def test_numbers_end_and_the_rest_is_unknown(tmp_path):
    lines = [f"selten{n} oft\trare{n} often" for n in range(WORDS + 400)]
    data = load_data("de-en", table(tmp_path, lines))
    assert len(data.source_words) == len(data.target_words) == WORDS
    assert data.train_x.max() == WORDS - 1 and (data.train_x[:, 0] == UNKNOWN).any()
    assert data.describe()["words"] == [WORDS, WORDS]


def test_a_record_knows_sentences_by_their_checksums(tmp_path):
    lines = [f"das sind {n}\tthese are {n}" for n in range(20)]
    first = load_data("de-en", table(tmp_path, lines)).describe()
    assert first == load_data("de-en", table(tmp_path, lines)).describe()
    renamed = load_data("de-en", table(tmp_path, [line.replace("das", "dies") for line in lines])).describe()
    assert renamed["sha256"] == first["sha256"] and renamed["words_sha256"] != first["words_sha256"]
    assert load_data("de-en", table(tmp_path, lines[::-1])).describe()["sha256"] != first["sha256"]
    part = load_data("de-en", table(tmp_path, lines)).first(train=4)
    assert part.describe()["train"] == 4 and part.source_words


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, r"the data set 'de-en' is not there: there is no file '.*mine.tsv'; on Debian: apt install trans-de-en"),
        (b"ein Satz\tone\n" * 20, "has 1 lines with pairs of sentences of at most 11 words; at least 10 are needed"),
        (b"eins\tone\nzwei two\n", r"mine.tsv, line 2: a German and an English sentence need a tab between them"),
        (b"\xfcber\tover\n", r"the pairs of sentences '.*mine.tsv' are not UTF-8: .*0xfc in position 0"),
    ],
)
def test_unusable_files_are_named(content, message, tmp_path):
    file = tmp_path / "mine.tsv"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        load_data("de-en", file)


def test_a_folder_may_hold_either_file(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"has no pairs.tsv or de-en; on Debian"):
        load_data("de-en", tmp_path)
    (tmp_path / "de-en").mkdir()
    (tmp_path / "de-en" / "pairs.tsv").write_text("".join(f"{n}\t{n}\r\n" for n in range(10)))
    monkeypatch.setenv("SOFTNUM_DATA", str(tmp_path))
    assert "\r" not in "".join(load_data("de-en").target_words)


def test_without_a_folder_debians_is_looked_for(tmp_path, monkeypatch):
    monkeypatch.delenv("SOFTNUM_DATA", raising=False)
    monkeypatch.setattr("softnum.train.datasets.sentences._DEBIAN", tmp_path / "none")
    with pytest.raises(ValueError, match="no folder was given, and there is no .*none; on Debian: apt install trans"):
        load_data("de-en")
