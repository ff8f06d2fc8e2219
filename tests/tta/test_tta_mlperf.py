"""MLPerf logs of every round: what each of them says in its own way, excerpts as long as the rule in question needs."""

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from softnum.cli import build_app
from softnum.tta import gather_timings, read_accuracy, read_results, read_timings
from softnum.tta.mllog import read_mllog

REAL = os.environ.get("SOFTNUM_REAL_FILES")


def log(*events, **first):
    """Lines of a log since round 0.7: (seconds, key, value, metadata); run_start at 0."""
    head = [(0, key, value, {}) for key, value in first.items()] + [(0, "run_start", None, {})]
    rows = [
        {"time_ms": 1700000000000 + round(1000 * at), "key": key, "value": value, "metadata": metadata}
        for at, key, value, metadata in (*head, *events)
    ]
    return "".join(f":::MLLOG {json.dumps(row)}\n" for row in rows)


def both(tmp_path, text, **options):
    """The one record of a text, and the time of its iteration."""
    file = tmp_path / "result_0.txt"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    metric = options.pop("metric", "accuracy")
    (record,) = read_accuracy(file, design="a", metric=metric, **options).records
    return record, read_timings(file, design="a")["a"]


def places(record):
    return [evaluation.iteration for evaluation in record.evaluations]


ENDED = {"status": "success"}


# -- the three forms of lines ------------------------------------------------------------------------------------------
def test_round_5_is_measured_in_epochs(tmp_path):
    """Its batch size is that of a process, or of all: batches are not counted, and the wall time is taken."""
    text = """Beginning trial 1 of 1
:::MLPv0.5.0 resnet 1541720285.25 (/work/train.py:49) run_start
:::MLPv0.5.0 resnet 1541720285.50 (/work/train.py:49) run_set_random_seed: 37343
:::MLPv0.5.0 resnet 1541720285.75 (<string>:1) input_batch_size: 26
:::MLPv0.5.0 resnet 1541720286.00 (/work/train.py:49) model_hp_end_block: " Block Output: (256, 56.0, 56.0)"
:::MLPv0.5.0 resnet 1541720286.00 (/work/train.py:49) eval_target: 0.749
:::MLPv0.5.0 resnet 1541720290.25 (/work/train.py:49) train_epoch: 0
:::MLPv0.5.0 resnet 1541720300.25 (/work/train.py:49) train_epoch: 1
:::MLPv0.5.0 resnet 1541720310.25 (/work/train.py:49) eval_start
:::MLPv0.5.0 resnet 1541720311.25 (/work/train.py:49) eval_accuracy: {"epoch": 1, "value": 0.5}
:::MLPv0.5.0 resnet 1541720311.25 (/work/train.py:49) eval_stop
:::MLPv0.5.0 resnet 1541720311.25 (/work/train.py:49) train_epoch: 2
:::MLPv0.5.0 resnet 1541720321.25 (/work/train.py:49) train_epoch: 3
:::MLPv0.5.0 resnet 1541720331.25 (/work/train.py:49) eval_start
:::MLPv0.5.0 resnet 1541720333.25 (/work/train.py:49) eval_accuracy: {"epoch": 3, "value": 0.75}
:::MLPv0.5.0 resnet 1541720333.25 (/work/train.py:49) eval_stop
:::MLPv0.5.0 resnet 1541720333.25 (/work/train.py:49) run_stop: {"success": true}
"""
    record, time = both(tmp_path, text)
    assert places(record) == [2, 4] and [e.value for e in record.evaluations] == [0.5, 0.75]
    assert (record.seed, record.mlperf.unit, record.mlperf.seconds) == (37343, "epoch", 48.0)
    assert (record.mlperf.benchmark, record.mlperf.status) == ("resnet", "success")
    assert (record.mlperf.target.value, record.mlperf.target.direction) == (0.749, "higher")
    assert time.seconds * 4 == 48.0 and time.detail["unit"] == "epoch"
    assert time.detail["time"] == "wall time of the log, from run_start: evaluations and all else are inside"


def test_epochs_that_evaluations_name_from_minus_one(tmp_path):
    text = """:::MLPv0.5.0 transformer 100.0 (train.py:40) run_start
:::MLPv0.5.0 transformer 110.0 (train.py:116) train_epoch: 0
:::MLPv0.5.0 transformer 150.0 (train.py:149) eval_start: -1
:::MLPv0.5.0 transformer 160.0 (train.py:152) eval_accuracy: {"epoch": -1, "value": 20.5}
:::MLPv0.5.0 transformer 160.0 (train.py:154) eval_stop: -1
:::MLPv0.5.0 transformer 160.0 (train.py:116) train_epoch: 1
:::MLPv0.5.0 transformer 200.0 (train.py:149) eval_start: 0
:::MLPv0.5.0 transformer 210.0 (train.py:152) eval_accuracy: {"epoch": 0, "value": 25.5}
:::MLPv0.5.0 transformer 210.0 (train.py:167) run_stop
"""
    record, time = both(tmp_path, text)
    assert places(record) == [1, 2] and time.seconds == 55.0
    assert (record.mlperf.status, record.mlperf.target.value) == (None, 25.0)  # round 0.5 counts in percent


def six(*events):
    return "".join(
        f"0: :::MLL {1558420000 + at:.3f} {key}: {json.dumps({'value': value, 'metadata': metadata})}\n"
        for at, key, value, metadata in events
    )


def test_round_6_with_blocks_that_are_named_by_their_ends(tmp_path):
    record, time = both(
        tmp_path,
        six(
            (0, "submission_benchmark", "resnet", {}),
            (0, "global_batch_size", 100, {}),
            (0, "num_train_examples", 1000, {}),
            (1, "run_start", None, {}),
            (1, "block_start", None, {"first_epoch_num": 4, "epoch_count": 4}),
            (41, "block_stop", None, {"first_epoch_num": 4}),
            (41, "eval_accuracy", "0.5", {"epoch_num": 4}),  # some write numbers as text
            (41, "block_start", None, {"first_epoch_num": 8, "epoch_count": 4}),
            (121, "block_stop", None, {"first_epoch_num": 8}),
            (121, "eval_accuracy", 0.76, {"epoch_num": 8}),
            (121, "run_stop", None, ENDED),
        ),
    )
    assert places(record) == [40, 80] and record.mlperf.target.value == 0.759
    assert time.samples == (1.0, 2.0)
    assert time.detail["time"].endswith("evaluations inside, because the log does not say when they begin")


def test_neither_type_nor_milliseconds(tmp_path):
    rows = [
        '{"key": "global_batch_size", "value": 8, "metadata": {}}',
        '{"time_s": 10.0, "key": "run_start", "value": null}',
        '{"time_s": 10.0, "key": "block_start", "value": null, "metadata": {"samples_count": 0}}',
        '{"time_s": 12.5, "key": "block_stop", "value": null, "metadata": {"samples_count": 80}}',
        '{"time_s": 12.5, "key": "eval_accuracy", "value": 0.9, "metadata": {"samples_count": 80}}',
        '{"time_s": 13.0, "key": "run_stop", "value": null, "metadata": {"status": "aborted"}}',
    ]
    record, time = both(tmp_path, "".join(f":::MLLOG {row}\n" for row in rows))
    assert (places(record), time.seconds, record.mlperf.seconds) == ([10], 0.25, 3.0)
    assert not record.mlperf.converged and record.mlperf.target is None


def test_what_other_programs_write_between_the_lines(tmp_path):
    text = log(
        (1, "block_start", None, {"samples_count": 0}),
        (2, "block_stop", None, {"samples_count": 80}),
        (2, "eval_accuracy", 0.9, {"samples_count": 80}),
        (3, "run_stop", None, ENDED),
        global_batch_size=8,
    ).encode()
    first, rest = text.split(b"\n", 1)
    noisy = b"Epoch 1:  33%|\x88\x89 \r12%|\xe9 " + first + b"  50%|\x88\n\xff\xfe\n" + rest
    record, time = both(tmp_path, noisy)
    assert (places(record), time.seconds) == ([10], 0.1)


# -- counting ----------------------------------------------------------------------------------------------------------
def test_samples_count_as_the_length_of_a_block(tmp_path):
    record, time = both(
        tmp_path,
        log(
            (0, "block_start", None, {"samples_count": 1536, "step": 0}),
            (192, "block_stop", None, {"samples_count": 1536, "step": 192}),
            (192, "eval_start", None, {"samples_count": 1536, "step": 192}),
            (200, "eval_accuracy", 0.95, {"samples_count": 1536}),
            (200, "eval_stop", None, {"samples_count": 1536, "step": 192}),
            (200, "block_start", None, {"samples_count": 384, "step": 192}),
            (296, "block_stop", None, {"samples_count": 384, "step": 240}),
            (300, "eval_accuracy", 0.92, {"samples_count": 1920}),
            (300, "run_stop", None, {**ENDED, "step": 240, "samples_count": 1920}),
            global_batch_size=8, submission_benchmark="llama2_70b_lora", target_accuracy=0.925,
        ),
    )  # fmt: skip
    assert places(record) == [192, 240]
    assert (time.seconds, time.samples, time.iterations) == (288 / 240, (), 240)  # blocks are unlike: a mean over all
    assert (record.mlperf.target.value, record.mlperf.target.direction) == (0.925, "lower")


def bert(numbers=(1500, 3150), batch=66, train=3630000):
    """One block of the whole run, epoch numbers that are samples, and a train_samples that was planned."""
    events = [(10, "block_start", None, {"first_epoch_num": 1, "epoch_count": 1})]
    for at, samples in enumerate(numbers, start=1):
        events += [
            (200 * at, "eval_start", None, {"epoch_num": samples}),
            (200 * at + 20, "eval_stop", None, {"epoch_num": samples}),
            (200 * at + 20, "eval_accuracy", 0.5 + at / 9, {"epoch_num": samples}),
        ]
    events += [(430, "block_stop", None, {"first_epoch_num": 1}), (430, "run_stop", None, ENDED)]
    return log(*events, global_batch_size=batch, train_samples=train, submission_benchmark="bert")


def test_epoch_numbers_that_are_samples(tmp_path):
    """As epochs they would make 1.7e8 iterations of 430 seconds; the planned samples would make 55,000."""
    record, time = both(tmp_path, bert())
    assert places(record) == [23, 48]  # 22.7 and 47.7
    assert time.seconds == pytest.approx(370 / (3150 / 66), rel=1e-12)
    assert "one more or less" in time.detail["iterations"] and "counts samples" in time.detail["iterations"]
    assert time.detail["time"] == "between evaluations, less these (eval_start to eval_stop)"
    other, _ = both(
        tmp_path, bert().replace('"bert"', '"another"').replace("1500", "1500000").replace("3150", "3150000")
    )
    assert places(other) == [22727, 47727]


def test_epoch_numbers_that_are_tokens(tmp_path):
    events = []
    for at in (0, 1):
        tokens = {"first_epoch_num": at * 50331648, "epoch_count": 50331648}
        events += [
            (120 * at, "block_start", None, tokens),
            (120 * at + 120, "block_stop", None, {"first_epoch_num": at * 50331648}),
            (120 * at + 120, "eval_accuracy", 2.8 - at / 8, {"epoch_num": (at + 1) * 50331648}),
        ]
    text = log(*events, (240, "run_stop", None, ENDED), global_batch_size=2048, max_sequence_length=2048,
               submission_benchmark="gpt3")  # fmt: skip
    record, time = both(tmp_path, text)
    assert (places(record), time.samples) == ([12, 24], (10.0, 10.0))
    assert (record.mlperf.target.value, record.mlperf.target.direction) == (2.69, "lower")


def test_epochs_that_no_batch_divides_and_fractions_of_them(tmp_path):
    events = [
        (10, "epoch_start", None, {"epoch_num": 0}),
        (20, "eval_start", None, {"epoch_num": 0.05}),
        (22, "eval_accuracy", 0.79, {"epoch_num": 0.05}),
        (22, "eval_stop", None, {"epoch_num": 0.05}),
        (32, "eval_start", None, {"epoch_num": 0.1}),
        (34, "eval_accuracy", 0.81, {"epoch_num": 0.1}),
        (34, "eval_stop", None, {"epoch_num": 0.1}),
        (34, "run_stop", None, ENDED),
        (34, "epoch_stop", None, {"epoch_num": 0.1}),
    ]
    text = log(*events, global_batch_size=64, train_samples=100001, submission_benchmark="dlrm_dcnv2")
    record, time = both(tmp_path, text)
    assert places(record) == [78, 156] and "rounded to whole iterations" in time.detail["iterations"]
    assert time.seconds == pytest.approx(20 / (0.1 * 100001 / 64), rel=1e-12)


def test_train_samples_that_are_batches_and_an_epoch_that_was_cut_short(tmp_path):
    """Detectors log 4572, which is 1,170,301 images in batches of 256; evaluations run beside training."""
    events = [
        (0, "epoch_start", 0, {"epoch_num": 0}),
        (100, "epoch_stop", 0, {"epoch_num": 0}),
        (100, "eval_start", 1, {"epoch_num": 1}),
        (101, "epoch_start", 1, {"epoch_num": 1}),
        (120, "eval_accuracy", 0.2, {"epoch_num": 1}),
        (120, "eval_stop", 1, {"epoch_num": 1}),
        (201, "epoch_stop", 1, {"epoch_num": 1}),
        (201, "eval_start", 2, {"epoch_num": 2}),
        (202, "epoch_start", 2, {"epoch_num": 2}),
        (220, "eval_accuracy", 0.35, {"epoch_num": 2}),
        (220, "eval_stop", 2, {"epoch_num": 2}),
        (220, "epoch_stop", 2, {"epoch_num": 2}),
        (221, "run_stop", None, ENDED),
    ]
    text = log(*events, global_batch_size=256, train_samples=4572, submission_benchmark="ssd")
    record, time = both(tmp_path, text)
    assert (places(record), time.seconds, time.iterations) == ([4572, 9144], 100 / 4572, 9144)
    assert (record.mlperf.target.value, time.detail["time"]) == (0.34, "epoch_start to epoch_stop")


def test_numbers_of_which_nothing_is_said_are_measured(tmp_path):
    """Blocks of 1137 whatever, and an evaluation in the sixth: the time is that of the log."""
    events = [
        (1, "block_start", None, {"first_epoch_num": 0, "epoch_count": 1137}),
        (600, "block_stop", None, {"first_epoch_num": 0}),
        (650, "eval_accuracy", 0.73, {"epoch_num": 6}),
        (651, "run_stop", None, ENDED),
    ]
    text = log(*events, global_batch_size=440, train_samples=3565320, submission_benchmark="bert")
    record, time = both(tmp_path, text)
    assert (places(record), time.seconds, record.mlperf.unit) == ([1], 650.0, "evaluation")


def test_evaluations_after_the_run(tmp_path):
    """Reinforcement learning evaluates when all is over: epochs are timed, and those after run_stop left out."""
    events = []
    for at in range(4):
        events += [
            (100 * at, "epoch_start", None, {"epoch_num": 18 + at}),
            (100 * at + 100, "epoch_stop", None, {"epoch_num": 18 + at}),
        ]
    events += [(1000, "eval_accuracy", 0.3 * at, {"epoch_num": at}) for at in (1, 2)]
    events += [(200, "run_stop", None, ENDED)]
    record, time = both(tmp_path, log(*events, seed=0, submission_benchmark="minigo"))
    assert (places(record), time.samples, record.mlperf.seconds) == ([1, 2], (100.0, 100.0), 200.0)


def test_a_seed_for_each_process_and_what_is_logged_twice(tmp_path):
    events = [
        (1, "block_start", None, {"samples_count": 0}),
        (2, "block_stop", None, {"samples_count": 80}),
        (2, "eval_accuracy", 0.9, {"samples_count": 80}),
        (2, "eval_accuracy", 0.9, {"samples_count": 80, "checkpoint": "last"}),
        (3, "run_stop", None, ENDED),
    ]
    seeds = ":::MLLOG " + json.dumps({"time_ms": 0, "key": "seed", "value": 7}) + "\n"
    record, _ = both(tmp_path, seeds + seeds.replace("7", "5") + log(*events, global_batch_size=8))
    assert (record.seed, places(record)) == (7, [10])


@pytest.mark.parametrize("form", ["object", "list", "metadata"])
def test_an_accuracy_of_several_parts_is_picked_by_name(tmp_path, form):
    box, mask = [(2, {"samples_count": 80}), (4, {"samples_count": 160})], []
    for (at, place), values in zip(box, ((0.3, 0.2), (0.38, 0.35)), strict=True):
        if form == "metadata":
            mask += [
                (at, "eval_accuracy", value, {**place, "metric": name})
                for name, value in zip(("BBOX", "SEGM"), values, strict=True)
            ]
        else:
            value = list(values) if form == "list" else dict(zip(("BBOX", "SEGM"), values, strict=True))
            mask.append((at, "eval_accuracy", value, place))
    blocks = [
        (1, "block_start", None, {"samples_count": 0}),
        (2, "block_stop", None, {"samples_count": 80}),
        (3, "block_start", None, {"samples_count": 80}),
        (4, "block_stop", None, {"samples_count": 160}),
    ]
    events = sorted([*blocks, *mask], key=lambda event: event[0])
    text = log(*events, (4, "run_stop", None, ENDED), global_batch_size=8, submission_benchmark="maskrcnn")
    record, time = both(tmp_path, text, metric="segm")
    assert [e.value for e in record.evaluations] == [0.2, 0.35] and record.mlperf.target.value == 0.339
    assert (places(record), time.seconds) == ([10, 20], 0.1)
    with pytest.raises(
        ValueError, match=r"line \d+: eval_accuracy has the parts BBOX, SEGM; say which with --metric BBOX"
    ):
        both(tmp_path, text)
    with pytest.raises(ValueError, match=r"no event 'eval_keypoints'.* \(there are eval_accuracy, BBOX, SEGM\)"):
        both(tmp_path, text, metric="keypoints")


# -- contradictions ----------------------------------------------------------------------------------------------------
BLOCKS = [
    (1, "block_start", None, {"samples_count": 0, "step": 0}),
    (11, "block_stop", None, {"samples_count": 800, "step": 100}),
    (11, "eval_accuracy", 0.9, {"samples_count": 800, "step": 100}),
    (12, "run_stop", None, {"status": "success", "step": 100}),
]


def changed(at, **metadata):
    events = list(BLOCKS)
    time, key, value, old = events[at]
    events[at] = (time, key, value, {**old, **metadata})
    return log(*events, global_batch_size=8)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (changed(1, step=90), "line 4: the block from line 3 has 90 steps, and by its samples_count 100 batches of 8"),
        (changed(2, step=90), r"line 5: eval_accuracy is at step 90 and at samples_count 800, .* 8 \(line 1\)"),
        (changed(3, step=50), "line 6: run_stop is at iteration 50, and eval_accuracy at line 5 at 100"),
        (changed(3, step=50).replace('"time_ms": 1700000012000, ', ""),
         "line 6: run_stop is at iteration 50, and eval_accuracy at line 5 at 100"),
        (changed(2, step=100).replace("1700000012000", "1700000005000"),
         "line 6: from run_start at line 2 to run_stop there are 5 s, and 100 iterations at 0.1 s each are 10 s"),
        (changed(3).replace("1700000012000", "1600000000000"), "line 6: run_stop is not after run_start at line 2"),
        (log(*BLOCKS[:2], (11, "eval_accuracy", 0.9, {"samples_count": 7200}), BLOCKS[3], global_batch_size=8),
         "line 5: eval_accuracy is at iteration 900, and the blocks before it, the last of which begins at line 3,"),
    ],
)  # fmt: skip
def test_a_log_that_contradicts_itself(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        both(tmp_path, text)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ((3.5, "global_batch_size", 16, {}), "line 6: global_batch_size is 16, where global_batch_size at line 1 is 8"),
        ((3.5, "input_batch_size", 16, {}), "line 6: input_batch_size is 16, where global_batch_size at line 1 is 8"),
        ((3.5, "epoch_start", None, {"epoch_num": 2, "batch": 4}), "line 6: batch is 4, where global_batch_size at"),
    ],
)
def test_a_batch_that_changes_within_the_run(tmp_path, changed, said):
    run = (
        (1, "epoch_start", None, {"epoch_num": 1}), (3, "epoch_stop", None, {"epoch_num": 1}),
        (3.4, "eval_accuracy", 0.4, {"epoch_num": 1}), (4, "epoch_start", None, {"epoch_num": 2}),
        (6, "epoch_stop", None, {"epoch_num": 2}), (6.1, "eval_accuracy", 0.9, {"epoch_num": 2}),
        (7, "run_stop", None, ENDED),
    )  # fmt: skip
    head = {"global_batch_size": 8, "train_samples": 80}
    record, _ = both(tmp_path, log(*run, **head))
    assert places(record) == [10, 20]
    rest = run[4:] if changed[1] == "epoch_start" else run[3:]
    with pytest.raises(ValueError, match=said.replace("line 6", "line 7") + ".*CSV with the columns iteration"):
        both(tmp_path, log(*run[:3], changed, *rest, **head))
    with pytest.raises(ValueError, match="the batch changes within the run"):
        read_timings(tmp_path / "result_0.txt", design="a")


EPOCHS = [
    (1, "epoch_start", None, {"epoch_num": 1}), (30, "epoch_stop", None, {"epoch_num": 1}),
    (34, "eval_accuracy", 0.4, {"epoch_num": 1}), (40, "epoch_start", None, {"epoch_num": 2}),
    (60, "epoch_stop", None, {"epoch_num": 2}), (61, "eval_accuracy", 0.9, {"epoch_num": 2}),
    (70, "run_stop", None, ENDED),
]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('1700000040000', '1700000004000', "line 8: epoch_start is 26 s earlier than epoch_stop at line 6; lines"),
        ('1700000034000', '1700000034000000', r"line 7: 1.7e\+15 ms are no time since 1970, up to the year 2200"),
        ('1700000034000', '-1700000034000', r"line 7: -1.7e\+12 ms are no time since 1970"),
        ('"value": 0.4,', '"value": 40.0,', "line 7: eval_accuracy is 40, where values lie between 0 and 1, as"),
        ('"value": 0.4,', '"value": -0.4,', "line 7: eval_accuracy is -0.4, where values lie between 0 and 1"),
        ('80,', '80000000000,', "line 9: 2e\\+10 iterations in 49 s up to here, less than a microsecond each; c"),
        ('"epoch_num": 2', '"epoch_num": 3', "line 8: epoch_start of epoch 3, after that of 1 at line 5; one of each"),
    ],
)  # fmt: skip
def test_numbers_that_cannot_be(tmp_path, old, new, said):
    text = log(*EPOCHS, submission_benchmark="resnet", global_batch_size=8, train_samples=80)
    assert places(both(tmp_path, text)[0]) == [10, 20]
    assert old in text
    with pytest.raises(ValueError, match=said):
        both(tmp_path, text.replace(old, new))


def test_an_evaluation_that_only_begins_or_ends(tmp_path):
    """Its time would be left in an iteration without a word."""
    pause = [(15, "eval_start", None, {"epoch_num": 1}), (20, "eval_stop", None, {"epoch_num": 1})]
    later = [(62, "eval_start", None, {"epoch_num": 2}), (63, "eval_stop", None, {"epoch_num": 2})]
    head = {"global_batch_size": 8, "train_samples": 80}
    times = {}
    for name, some in (("all", pause + later), ("start", pause[:1] + later), ("stop", pause[1:] + later)):
        text = log(*sorted([*EPOCHS, *some], key=lambda event: event[0]), **head)
        try:
            times[name] = both(tmp_path, text)[1].seconds
        except ValueError as error:
            times[name] = str(error).partition(": ")[2]
    assert times["all"] == 44 / 20
    assert times["start"].startswith("eval_start without eval_stop after it, and another eval_start follows")
    assert times["stop"].startswith("eval_stop without eval_start before it; the log is not whole")


def test_samples_or_tokens_where_no_benchmark_is_named(tmp_path):
    events = [(9, "eval_accuracy", 2.7, {"epoch_num": 50331648}), (18, "eval_accuracy", 2.6, {"epoch_num": 100663296}),
              (19, "run_stop", None, ENDED)]  # fmt: skip
    head = {"global_batch_size": 2048, "train_samples": 20000000}
    record, _ = both(tmp_path, log(*events, submission_benchmark="gpt3", **head))
    assert (places(record), record.counts) == ([12, 24], "iteration")  # tokens of 2048 a sequence
    assert both(tmp_path, log(*events, **head))[0].counts == "evaluation"


def test_options_that_a_log_makes_nothing_of(tmp_path):
    text = log(*BLOCKS, global_batch_size=8)
    with pytest.raises(ValueError, match="says itself what it calls its first epoch; leave --counts-from 0 out"):
        both(tmp_path, text, counts_from=0)
    with pytest.raises(ValueError, match="line 5: evaluations are placed by .*; leave --iterations-per-epoch out"):
        both(tmp_path, text, iterations_per_epoch=7)
    epochs = [(1, "epoch_start", None, {"epoch_num": 1}), (3, "epoch_stop", None, {"epoch_num": 1}),
              (3.4, "eval_accuracy", 0.4, {"epoch_num": 1}), (7, "run_stop", None, ENDED)]  # fmt: skip
    with pytest.raises(ValueError, match="line 2: train_samples 80 are 10 iterations an epoch, of 8 each, and 7 are"):
        both(tmp_path, log(*epochs, global_batch_size=8, train_samples=80), iterations_per_epoch=7)
    with pytest.raises(ValueError, match="batches cannot be counted .*; leave --batch 8 out"):
        both(tmp_path, log(*epochs), batch=8)
    result = softnum("tta", "--accuracy", f"a={tmp_path / 'result_0.txt'}", "--simulate", "--target", "0.8",
                     "--out", tmp_path / "out")  # fmt: skip
    assert result.exit_code == 2 and "--simulate is for a simulator's times" in " ".join(result.stderr.split())


# -- several logs, and MLPerf's own figure -----------------------------------------------------------------------------
def softnum(*arguments):
    return CliRunner().invoke(build_app(), [str(argument) for argument in arguments])


def submission(folder, slower=1.0, count=4):
    """Logs of one seed: gnmt of 200 iterations, 10 s to the second evaluation, then a second or more until run_stop."""
    folder.mkdir()
    for number in range(count):
        events = []
        for epoch in (1, 2):
            at = 5 * slower * (epoch - 1)
            events += [
                (at, "block_start", None, {"first_epoch_num": epoch, "epoch_count": 1}),
                (at + 5 * slower, "block_stop", None, {"first_epoch_num": epoch}),
                (at + 5 * slower, "eval_accuracy", 0.13 * epoch, {"epoch_num": epoch}),
            ]
        events.append((10 * slower + number**2, "run_stop", None, ENDED))
        text = log(*events, seed=1, global_batch_size=8, train_samples=800, submission_benchmark="gnmt")
        (folder / f"result_{number}.txt").write_text(text.replace("17000000", f"1700{number}000"))
    return folder


def test_logs_of_a_submission_are_repetitions(tmp_path):
    fast, slow = submission(tmp_path / "fast"), submission(tmp_path / "slow", slower=2.0)
    result = softnum(
        "tta", "--accuracy", f"slow={slow}", "--accuracy", f"fast={fast}", "--out", tmp_path / "out", "--explain"
    )
    assert result.exit_code == 0, result.stderr
    assert "Target accuracy 0.24: MLPerf's gnmt, round 0.7 and later." in result.stderr
    found = read_results(tmp_path / "out")
    slow_found, fast_found = found["variants"][0]["designs"]
    assert (found["target"], found["direction"]) == (0.24, "higher")
    assert fast_found["tta"] == {"median": 10.0, "low": 10.0, "high": 10.0} and fast_found["runs_in_all"] == 4
    assert slow_found["tta"]["median"] == 20.0 and fast_found["speedup"] == 2.0
    # run_stop comes 0, 1, 4 and 9 seconds after the target: the first and the last are dropped
    assert (fast_found["mlperf_seconds"], slow_found["mlperf_seconds"]) == (12.5, 22.5)
    assert fast_found["mlperf"]["runs"] == [10.0, 11.0, 14.0, 19.0]
    assert "MLPerf's own figure of fast: 12.5 s (olympic mean of 4 logs" in result.stdout
    times = gather_timings([("fast", fast)])["fast"]
    assert (times.seconds, times.samples, times.iterations) == (0.05, (0.05,) * 4, 800)


def test_one_log_twice_is_no_repetition(tmp_path):
    folder = submission(tmp_path / "fast", count=1)
    (folder / "result_1.txt").write_text((folder / "result_0.txt").read_text())
    with pytest.raises(ValueError, match=r"result_1.txt: design 'a' with seed 1 is already in .*result_0.txt"):
        read_accuracy(folder, design="a")


def test_a_run_that_did_not_converge_counts_as_the_slowest(tmp_path):
    folder = submission(tmp_path / "fast")
    file = folder / "result_0.txt"
    file.write_text(file.read_text().replace("success", "aborted").replace("0.26", "0.2"))
    result = softnum("tta", "--accuracy", f"a={folder}", "--out", tmp_path / "out")
    (found,) = read_results(tmp_path / "out")["variants"][0]["designs"]
    assert (found["mlperf_seconds"], found["reached"]) == (16.5, 3), result.stdout
    second = folder / "result_1.txt"
    second.write_text(second.read_text().replace("success", "aborted"))
    softnum("tta", "--accuracy", f"a={folder}", "--out", tmp_path / "out")
    assert read_results(tmp_path / "out")["variants"][0]["designs"][0]["mlperf_seconds"] is None


def test_targets_that_do_not_fit(tmp_path):
    folder = submission(tmp_path / "fast", count=1)
    file = folder / "result_0.txt"
    file.write_text(file.read_text().replace("0.26", "0.2"))
    result = softnum("tta", "--accuracy", f"a={file}", "--out", tmp_path / "out")
    assert result.exit_code == 2 and "run_stop says success, and no evaluation reaches accuracy 0.24" in result.stderr
    assert softnum("tta", "--accuracy", f"a={file}", "--target", "0.2", "--out", tmp_path / "out").exit_code == 0
    file.write_text(file.read_text().replace("gnmt", "something"))
    result = softnum("tta", "--accuracy", f"a={file}", "--out", tmp_path / "out")
    assert result.exit_code == 2 and "the log states no target, and none is known of 'something'" in result.stderr


def test_a_curve_of_epochs_is_not_multiplied_with_the_time_of_an_iteration(tmp_path):
    folder = submission(tmp_path / "fast", count=1)
    file = folder / "result_0.txt"
    file.write_text(file.read_text().replace("train_samples", "other"))
    times = tmp_path / "times.csv"
    times.write_text("design,iteration,seconds\na,1,0.5\n")
    result = softnum("tta", "--accuracy", f"a={file}", "--timings", times, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "its curve counts epochs, and the time of" in " ".join(result.stderr.split())


# -- files of others ---------------------------------------------------------------------------------------------------
@pytest.mark.skipif(REAL is None, reason="SOFTNUM_REAL_FILES names no folder of real files")
def test_real_logs():
    """Each finished log of the folder gives a curve, a time and, with its own target, a time to accuracy."""
    files = sorted(file for file in Path(REAL, "mlperf").iterdir() if not file.name.startswith("."))
    failed = {}
    for file in files:
        try:
            if not read_mllog(file).finished:
                continue
            time = read_timings(file, design="a")["a"]
            try:
                (record,) = read_accuracy(file, design="a").records
            except ValueError as error:
                part = str(error).partition("say which with --metric ")[2]
                assert part, error
                (record,) = read_accuracy(file, design="a", metric=part).records
            target = record.mlperf.target
            assert target is not None, "no target"
            better = [e.value >= target.value if target.direction == "higher" else e.value <= target.value
                      for e in record.evaluations]  # fmt: skip
            assert any(better) or record.mlperf.status != "success", f"{target} is not reached"
            at = record.evaluations[better.index(True) if any(better) else -1].iteration
            assert 0.3 < at * time.seconds / record.mlperf.seconds < 1.03, (at * time.seconds, record.mlperf.seconds)
        except (ValueError, AssertionError) as error:
            failed[file.name] = str(error)[:300]
    assert len(failed) <= len(files) // 20, failed
