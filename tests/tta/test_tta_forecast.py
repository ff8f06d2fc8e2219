"""Forecasts: factors put together by hand, intervals, the search, what is refused, files that are checked, a page."""

import json
import math
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from softnum.cli import build_app
from softnum.tta import forecast, read_forecasts, write_forecasts, write_report
from softnum.tta.architectures import Precision
from softnum.tta.architectures.large_models import decoders
from softnum.tta.arithmetic_law import ArithmeticLaw
from softnum.tta.forecasts import Amount, Given, read_ways
from softnum.tta.forecasts.search import MICRO_BATCH, PIPELINE, TENSOR, find_step
from softnum.tta.html import export_report
from softnum.tta.parallelism import Parallelism, checkpoints, plan_step, step_memory, step_time, system
from softnum.tta.parallelism.system import HELD_OUT
from softnum.tta.scaling_law import ScalingLaw
from tests.support.cases import cases

FITTED = (482.0, 2085.0, 1.817, 0.348, 0.366)
DRAWS = tuple((482.0, b, 1.817, 0.348, 0.366) for b in (2000.0, 2085.0, 2200.0))
LAW = ScalingLaw(*FITTED, DRAWS, (6e7, 1.6e10), (8e8, 3e11), 240, confidence=0.9)
BF16 = Precision.named("bfloat16")
DEVICE = """
peaks = { fp32 = "75 TFLOP/s", bf16 = "2250 TFLOP/s" }
memory = "180 GB"
bandwidth = "8000 GB/s"
source = "a plan"
"""
SYSTEM = """
[systems.mine]
tiers = [
    { name = "board", devices = 8, bandwidth = "900 GB/s" },
    { name = "hall", devices = 512, bandwidth = "50 GB/s" },
]
mtbf = "50000 h"
storage = "100 GB/s"
source = "a plan"
[systems.mine.device]
"""
PRICED = 'watts = 1000\nrent = { dollars = 3.5, date = "2026-11", source = "an offer" }\n'


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A system with prices, one without, and a law, in the current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(SYSTEM + DEVICE + PRICED)
    (tmp_path / "bare.toml").write_text(SYSTEM + DEVICE)
    (tmp_path / "law.json").write_text(LAW.to_json())
    return tmp_path


def run(*words):
    done = CliRunner().invoke(build_app(), ["tta", *map(str, words)])
    return done.exit_code, done.output


def tta(*words, model="gpt2-large", loss=2.8, where="mine.toml"):
    given = ("--model", model, "--law", "law.json", "--target-loss", loss, "--system", where)
    return run(*given, "--devices", 64, "--batch", 512, "--ways", "tensor=2,zero=1", "--out", "out", *words)


# -- what is put together ----------------------------------------------------------------------------------------------
def test_factors_are_those_of_the_parts_and_the_rest_follows():
    where = replace(system("dgx-h100"), mtbf=5e4 * 3600, storage=1e11)
    given = Given(devices=64, batch=512, ways={"tensor": 2, "zero": 1}, rent=2.5)
    told = forecast("gpt2-large", BF16, where, LAW, 2.8, given)
    plan = plan_step("gpt2-large", Parallelism(data=32, tensor=2, zero=1, batch=512), "bfloat16")
    step, state = step_time(plan, where).seconds, step_memory(plan).state
    size = decoders()["gpt2-large"].architecture().parameters
    tokens = (2085.0 / (2.8 - 1.817 - 482.0 / size**0.348)) ** (1 / 0.366)
    useful = checkpoints(64, where.mtbf, state / 1e11, where.restart).useful
    steps = math.ceil(tokens / (512 * 1024))
    seconds = steps * step / useful
    hours = seconds * 64 / 3600
    right = {"parameters": size, "tokens": tokens, "steps": steps, "step": step, "useful share": useful,
             "time": seconds, "device-hours": hours, "cost": 2.5 * hours, "energy": hours * 3600 * 700}  # fmt: skip
    assert {name: told[name].value for name in right} == pytest.approx(right, rel=1e-12)
    assert told["rent"].source == "--rent" and "NVIDIA" in told["watts"].source and not told.extrapolated
    # the ends: of the law's drawings, and of steps that no constant was fitted on; of both at least 0.9 + 0.95 - 1
    ends = [(b / (2.8 - 1.817 - 482.0 / size**0.348)) ** (1 / 0.366) for b in (2000.0, 2200.0)]
    assert told["tokens"].ends == pytest.approx(ends) and told.confidence == pytest.approx(0.85)
    assert told["step"].ends == pytest.approx([step * share for share in HELD_OUT["models"]])
    for n, share in enumerate(HELD_OUT["models"]):
        assert told["time"].ends[n] == pytest.approx(math.ceil(ends[n] / (512 * 1024)) * step * share / useful)
    days, loss, low, high = told.curve[-1]
    assert low <= loss <= high < 2.8 and days > seconds / 86400


def test_a_system_of_which_no_step_was_measured_has_an_interval_of_its_own():
    given = Given(devices=64, batch=512, ways={"tensor": 2, "zero": 1})
    other = replace(system("dgx-h100"), launch=1e-5)
    told = forecast("gpt2-large", BF16, other, LAW, 2.8, given)
    assert told["step"].ends == pytest.approx([told["step"].value * share for share in HELD_OUT["systems"]])
    told = forecast("gpt2-large", BF16, system("dgx-h100"), LAW, 2.8, given)
    assert told["useful share"].value == 1 and "states no mtbf and storage" in told["useful share"].source
    assert told["rent"].source.startswith("h100-sxm: Amazon EC2")  # of the system's device, with who says so
    plain = forecast("gpt2-large", BF16, system("dgx-h100"), replace(LAW, draws=()), 2.8, given)
    assert plain["tokens"].low is None and plain.confidence == 0.95


def test_what_lies_beyond_the_data_is_said():
    given = Given(devices=4096, batch=512, ways={"tensor": 8, "zero": 1})
    far = (482.0, 2085.0, 2.0, 0.348, 0.366)
    told = forecast("llama3-8b", BF16, system("dgx-h100"), replace(LAW, draws=(*DRAWS, far)), 2.1, given)
    assert told["time"].high == math.inf  # a drawing never has the loss
    tokens, end, devices = told.extrapolated
    assert "tokens: the law's runs have 8e+08 to 3e+11" in tokens and "no limit" in end
    assert devices.startswith("4096 devices: the largest step that the times were compared with has 3072")
    big = forecast("llama3-70b", BF16, system("dgx-h100"), LAW, 2.0, replace(given, ways={"tensor": 8, "zero": 3}))
    assert any("parameters: the law's runs have 6e+07 to 1.6e+10" in line for line in big.extrapolated)


def test_the_search_finds_the_fastest_and_says_what_it_tried():
    where, model = system("dgx-h100"), decoders()["gpt2"]
    found = find_step(model, where, BF16, "adam", 8, 64, 1024)
    assert found == find_step(model, where, BF16, "adam", 8, 64, 1024)
    times = []
    for tensor in TENSOR:
        for pipeline in PIPELINE:
            for micro in MICRO_BATCH:
                try:
                    data = 8 // (tensor * pipeline)
                    ways = Parallelism(data, tensor, pipeline, batch=64, micro_batch=micro, zero=1, sequence=1024)
                    if ways.devices == 8:
                        times.append(step_time(plan_step(model, ways, BF16), where).seconds)
                except ValueError:
                    continue
    assert (found.step.time.seconds, found.fitting) == (min(times), len(times))
    tight = replace(where, device=replace(where.device, memory=10**8))
    with pytest.raises(ValueError, match=r"gpt2 fits into 0.1 GB of a device of dgx-h100 in none of \d+ ways on 8"):
        find_step(model, tight, BF16, "adam", 8, 64, 1024)
    with pytest.raises(
        ValueError, match="none of the tried combinations of parallelism divides 17 devices and a batch of 7"
    ):
        find_step(decoders()["gpt2"], where, BF16, "adam", 17, 7, 1024)


# -- what is refused ---------------------------------------------------------------------------------------------------
WRONG = {
    "a loss beyond the law": (("llama3-8b", 2.0, Given()), "tokens are far from the 8e.08 to 3e.11 of the runs"),
    "a loss below the law": (("gpt2", 1.8, Given()), "a loss of 1.8 is never reached"),
    "a model beyond the law": (("llama3-405b", 2.5, Given()), "parameters are far from the 6e.07 to 1.6e.10"),
    "no decoder": (("resnet50", 2.5, Given()), "resnet50 is not trained on tokens"),
    "no model": (("llama3-8", 2.5, Given()), "did you mean 'llama3-8b'"),
    "experts": (("mixtral-8x7b", 2.5, Given()), "8 experts and 46,702,792,704 parameters.*--parameters"),
    "no loss": (("gpt2", math.nan, Given()), "the target loss must be"),
    "too many devices": (("gpt2", 3.2, Given(devices=20000)), "dgx-h100 has at most 16384; take fewer"),
    "groups": (("gpt2", 3.2, Given(64, 64, {"tensor": 3})), "3 ways do not divide 64 devices; take 63 devices"),
    "data": (("gpt2", 3.2, Given(64, 64, {"data": 3})), "data 3 x .* are 3 devices, and 64 are asked for"),
    "heads": (("gpt2", 3.2, Given(64, 64, {"tensor": 8})), "heads"),
    "batch": (("gpt2", 3.2, Given(64, 65, {"tensor": 1})), "do not divide a batch of 65; take a multiple of 64"),
    "memory": (("llama3-8b", 2.3, Given(8, 64, {"zero": 0})), r"a device has 80.0 GB; it would with zero=2, or with"),
    "a batch of all": (("gpt2", 3.2, Given(64, 10**8)), "has more tokens than the .* to the target; take a --batch"),
    "an optimiser": (("gpt2", 3.2, Given(8, 64, {}, optimiser="lion")), "unknown optimiser 'lion'"),
}  # fmt: skip


@cases("case", WRONG)
def test_what_cannot_be_is_refused_with_a_way_out(case):
    (model, loss, given), message = WRONG[case]
    with pytest.raises(ValueError, match=message):
        forecast(model, BF16, system("dgx-h100"), LAW, loss, given)


@cases(
    "text",
    [
        "tensor",
        "tensor=",
        "tensor=-1",
        "sequence=0",
        "tensor=1.5",
        "tensor=2,tensor=4",
        "batch=8",
        "overlap=1",
        "",
        "x=1",
    ],
)
def test_ways_are_read_or_refused(text):
    with pytest.raises(ValueError, match="--ways"):
        read_ways(text)


def test_numbers_of_no_sense_are_refused():
    for given in ({"devices": 0}, {"batch": -1}, {"rent": 0.0}, {"rent": math.inf}, {"parameters": math.nan}):
        with pytest.raises(ValueError, match=next(iter(given))):
            Given(**given)
    with pytest.raises(ValueError, match="does not lie in its interval"):
        Amount("x", "", 1.0, 2.0, 3.0, "law", "")
    slow = replace(system("dgx-h100"), mtbf=3600.0, storage=1e6)
    with pytest.raises(ValueError, match="so that no work is done; state faster storage"):
        forecast("gpt2-large", BF16, slow, LAW, 2.8, Given(devices=64, batch=512, ways={"tensor": 2, "zero": 1}))


# -- the command and its files -----------------------------------------------------------------------------------------
def test_the_command_prints_the_result_first_and_writes_it(mine):
    code, said = tta("--design", "nvfp4-recipe,te-nvfp4-block-scaling")
    assert code == 0, said
    assert said.startswith("gpt2-large in nvfp4-recipe to a loss of 2.8 on 64 devices of mine: ")
    assert "cost $" in said.splitlines()[1] and "kWh" in said.splitlines()[1]
    found = read_forecasts("out/results.json")
    first, second = found["forecasts"]
    amounts = {each.name: each for each in first["amounts"]}
    assert amounts["rent"].source == "device of mine: an offer, 2026-11"
    assert [row["role"] for row in found["sources"]] == ["law", "system", "design"]
    assert any("no rate for nvfp4; bf16" in note for note in first["notes"])  # the device has no rate of fp4
    # the page: whole, the same from the same, and nothing to load
    page = (mine / "out" / "report.html").read_text(encoding="utf-8")
    assert "te-nvfp4-block-scaling" in page and "an offer" in page and "default-src 'none'" in page
    assert write_report("out", "again.html").stat().st_size > 1e5
    export_report("out", csv="csv", json="all.json")
    assert json.loads((mine / "all.json").read_text())["designs"] == [first["design"], second["design"]]
    assert (mine / "csv" / "forecast.csv").read_text().count("\n") == 3
    (mine / "law.json").write_text("{}")
    with pytest.raises(ValueError, match="law.json has changed since .* was made from it"):
        write_report("out", "again.html")


def test_what_is_not_stated_is_not_assumed(mine):
    code, said = tta(where="bare.toml")
    assert code == 0 and "No cost: neither" in said and "add --rent 2.48" in said and "No energy: device of" in said
    assert {"cost", "energy"} & {each.name for each in read_forecasts("out/results.json")["forecasts"][0]["amounts"]} \
        == set()  # fmt: skip
    code, said = tta("--rent", "2", where="bare.toml")
    assert code == 0 and "cost $" in said


def test_a_file_that_contradicts_itself_is_refused(mine):
    given = Given(devices=64, batch=512, ways={"tensor": 2, "zero": 1})
    told = forecast("gpt2-large", BF16, system("dgx-h100"), LAW, 2.8, given)
    file = write_forecasts("results.json", [told], [("law.json", "law")])
    whole = json.loads(file.read_text())

    def tampered(change):
        table = json.loads(json.dumps(whole))
        change(table, table["forecasts"][0])
        file.write_text(json.dumps(table))
        with pytest.raises(ValueError, match="run softnum tta --law again") as error:
            read_forecasts(file)
        return str(error.value)

    assert "from the rest follows" in tampered(lambda table, row: row["amounts"][-1].update(value=1.0, low=0.5))
    assert "step is not that" in tampered(lambda table, row: row["step"].update(seconds=1.0))
    assert "not those of a forecast" in tampered(lambda table, row: row["amounts"].pop())
    assert "different lengths" in tampered(lambda table, row: row["curve"]["days"].pop())
    assert "must be a number" in tampered(lambda table, row: row["amounts"][0].update(value=True))
    assert "empty" in tampered(lambda table, row: table["forecasts"].clear())
    assert "schema" in tampered(lambda table, row: table.update(schema="softnum.forecast/2"))
    with pytest.raises(ValueError, match="designs must have different names"):
        write_forecasts("results.json", [told, told])


def test_a_law_of_several_designs_gives_each_its_tokens(mine):
    designs = {"bfloat16": ("wide", 23.0, 64.0, 256.0), "te-nvfp4-block-scaling": ("narrow", 4.0, 64.0, 256.0)}
    draws = tuple((0.0, own, 0.1, 1.0, 1.0) for own in (0.04, 0.05, 0.06))
    law = ArithmeticLaw(LAW, {"wide": 0.0, "narrow": 0.05}, (0.1, 1.0, 1.0), draws, (128.0, 4.0), designs, ())
    (mine / "law.json").write_text(law.to_json())
    code, said = tta("--design", "bfloat16,te-nvfp4-block-scaling", "--law-products", 256)
    assert code == 0 and "law.json, te-nvfp4-block-scaling" in said, said
    rows = read_forecasts("out/results.json")["forecasts"]
    found = [next(each.value for each in row["amounts"] if each.name == "tokens") for row in rows]
    assert found == [law.of(name, 256.0).tokens_to(2.8, 774030080).value for name in designs]
    assert found[1] > 1.2 * found[0]
    code, said = tta("--design", "fp8", "--law-design", "te-nvfp4-block-scaling", "--law-products", 64)
    assert code == 0 and "law.json, te-nvfp4-block-scaling" in said, said
    code, said = tta("--design", "fp8")
    assert code == 2 and "no design 'fp8'; choose with --law-design" in said, said
    code, said = tta("--design", "te-nvfp4-block-scaling")
    assert code == 2 and "depends on K" in said, said
    (mine / "law.json").write_text(LAW.to_json())
    code, said = tta("--law-products", 64)
    assert code == 2 and "--law-products needs a law of several designs" in said, said


@cases("words, message", [
    (("--law", "law.json"), "--law needs a language model: --model llama3-8b"),
    (("--law", "law.json", "--model", "gpt2"), "--law needs --system"),
    (("--law", "law.json", "--model", "gpt2", "--system", "dgx-h100"), "--law needs --target-loss"),
    (("--law", "law.json", "--model", "gpt2", "--epochs", "3"), "--epochs cannot be combined with --law"),
    (("--law", "law.json", "--model", "gpt2", "--lr", "3"), "--lr cannot be combined with --law"),
    (("--system", "dgx-h100"), "--system is an option of forecasts by a law; add --law law.json"),
    (("--law", "none.json", "--model", "gpt2", "--system", "dgx-h100", "--target-loss", "3"), "softnum law fit writes"),
])  # fmt: skip
def test_options_that_do_not_go_together_are_refused(mine, words, message):
    code, said = run(*words)
    assert code == 2 and message in said, said


def test_other_results_are_not_lost(mine):
    (mine / "out").mkdir()
    (mine / "out" / "results.json").write_text('{"schema": 2}')
    code, said = tta()
    assert code == 2 and "has results of another kind, which would be lost; name another folder with --out" in said
    assert tta("--rent", "2", "--rent", "a=3")[0] == 2
    code, said = tta("--design", "nvfp-recipe", "--out", "new")
    assert code == 2 and "no design is called 'nvfp-recipe'" in said
