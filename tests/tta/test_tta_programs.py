"""Products of a network as programs of simulators, and whose log comes back."""

import re
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from softnum.cli import build_app
from softnum.tta import (
    Operation,
    Workload,
    gather_timings,
    read_timings,
    read_workloads,
    study_variants,
    write_workloads,
)
from softnum.tta.programs import PROGRAM_FORMATS, export_program
from softnum.tta.programs.cuda import BLOCK
from softnum.tta.programs.ptx import ptx_kernels
from softnum.tta.workloads import network_digest
from softnum.tta.workloads.hardware import DesignPoint, Gemm
from softnum.tta.workloads.products import ProductName, read_product_name
from tests.support.ptx import run_kernel
from tests.support.timing_files import DATA

SHAPES = (("fc1", "forward", 33, 17, 40), ("fc2", "forward", 5, 1, 17), ("fc2", "backward_data", 33, 17, 40))


def work_of(shapes=SHAPES, batch=8, design="d", bits=32, counts=()):
    counts = counts or (1,) * len(shapes)
    gemms = [Gemm(*shape, bits, count=count) for shape, count in zip(shapes, counts, strict=True)]
    return Workload("net", design, batch, tuple(Operation(g.layer, g.phase, "gemm", 1, 1, 1, (), g) for g in gemms))


def softnum(*arguments):
    return CliRunner().invoke(build_app(), [str(argument) for argument in arguments], catch_exceptions=False)


def log(path, names, ended=True):
    """A log with GPGPU-Sim's lines that a reader needs: 100 cycles the first kernel, 200 the second, ..."""
    lines = ["GPGPU-Sim Simulator Version 4.2.0", "GPGPU-Sim uArch: clock freqs: " + ":".join(["1e9"] * 4)]
    total = 0
    for at, name in enumerate(names, start=1):
        total += 100 * at
        lines += [
            f"GPGPU-Sim PTX: pushing kernel '{name}' to stream 0, gridDim= (3,2,1) blockDim = (16,16,1) ",
            f"kernel_name = {name} ", f"kernel_launch_uid = {at} ", f"gpu_sim_cycle = {100 * at}", "gpu_sim_insn = 7",
            f"gpu_tot_sim_cycle = {total}", f"gpu_tot_sim_insn = {7 * at}",
        ]  # fmt: skip
    path.write_text("\n".join([*lines, *(["GPGPU-Sim: *** exit detected ***"] if ended else [])]) + "\n")
    return path


def names_of(work):
    digest = network_digest(work)
    return [str(ProductName(*gemm.shape, digest)) for gemm in work.gemms for _ in range(gemm.count)]


# -- programs ----------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def c_program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("c")
    export_program(work_of(counts=(1, 3, 1)), "gem5-c", folder)
    return folder


def compile_and_run(source, *options, compiler="cc", runner=()):
    program = source.with_suffix(".run")
    subprocess.run([compiler, *options, source, "-o", program], check=True, capture_output=True, text=True)
    return subprocess.run([*runner, program], capture_output=True, text=True, timeout=60)


def test_ptx_computes_the_products():
    """By an interpreter of the few instructions, every load and store in bounds: sums of whole numbers are exact."""
    rng, work = np.random.default_rng(3), work_of()
    text = ptx_kernels(work)
    for name, gemm in zip(names_of(work), work.gemms, strict=True):
        m, n, k = gemm.shape
        a, b = (rng.integers(-2, 3, shape).astype(np.float32) for shape in ((m, k), (k, n)))
        c = np.full(m * n, np.nan, np.float32)
        run_kernel(text, name, (a.ravel(), b.ravel(), c), (-(-m // BLOCK), -(-n // BLOCK)))
        assert np.array_equal(c.reshape(m, n), a @ b), name


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_the_c_program_computes_all_products(c_program):
    strict = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-O1")
    done = compile_and_run(c_program / "products.c", *strict)
    digest = network_digest(work_of(counts=(1, 3, 1)))
    rows = re.findall(r"^(gemm_\w+), (\S+ \S+), (\d) times: checksum ([0-9a-f]{16}), right$", done.stdout, re.MULTILINE)
    assert done.returncode == 0 and done.stdout.endswith(f"\n{digest}: 3 of 3 products right\n")
    assert [row[:3] for row in rows] == [
        (f"gemm_m33_n17_k40_{digest}", "fc1 forward", "1"),
        (f"gemm_m5_n1_k17_{digest}", "fc2 forward", "3"),
        (f"gemm_m33_n17_k40_{digest}", "fc2 backward_data", "1"),
    ]
    assert rows[0][3] == rows[2][3] == f"{checksum(33, 17, 40):016x}"
    narrow = compile_and_run(c_program / "products.c", "-DELEMENT=int8_t", "-DSUM=int32_t", "-DTILE=7", "-O1")
    assert narrow.stdout == done.stdout


def value(i, seed):
    x = (i + seed * 0x85EBCA6B) % 2**32
    x = (x ^ x >> 16) * 0x7FEB352D % 2**32
    x = (x ^ x >> 15) * 0x846CA68B % 2**32
    return (x ^ x >> 16) % 5 - 2


def weight(i, seed):
    x = (i * 0x9E3779B1 + seed) % 2**32
    x = (x ^ x >> 16) * 0x7FEB352D % 2**32
    return (x ^ x >> 15) % 65521 + 1


def checksum(m, n, k):
    """Of the product as it is defined, in Python's integers."""
    a, b = [value(i, 1) for i in range(m * k)], [value(i, 2) for i in range(k * n)]
    total = 0
    for i in range(m):
        for j in range(n):
            total += weight(i, 1) * weight(j, 2) * sum(a[i * k + at] * b[at * n + j] for at in range(k))
    return total % 2**64


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("l < least(k, l0 + TILE)", "l + 1 < least(k, l0 + TILE)"),  # sums without their last product of a tile
        ("c[i * n + j] += x", "c[i * n + j] = x"),  # only the last product of a sum
        ("products[p].run(a, b, results[p]);", "if (p != 1) products[p].run(a, b, results[p]);"),  # one not run
        ("b[l * n + j];\n", "b[j * k + l];\n"),  # the operand transposed
    ],
)
def test_a_fault_in_the_c_program_is_found(c_program, right, wrong):
    text = (c_program / "products.c").read_text()
    assert text.count(right) == 1
    source = c_program / "fault.c"
    source.write_text(text.replace(right, wrong).replace("malloc(", "calloc(1, "))
    done = compile_and_run(source)
    assert done.returncode == 1 and "WRONG" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", ["aarch64", "riscv64"])
def test_the_c_program_on_another_processor(c_program, name):
    compiler, emulator = f"{name}-linux-gnu-gcc", f"qemu-{name}"
    if not (shutil.which(compiler) and shutil.which(emulator)):
        pytest.skip(f"no {compiler} or {emulator}")
    done = compile_and_run(c_program / "products.c", "-O2", "-static", compiler=compiler, runner=(emulator,))
    assert done.returncode == 0 and done.stdout.endswith("3 of 3 products right\n")


@pytest.mark.slow
def test_cuda_and_ptx_compile(tmp_path):
    if shutil.which("nvcc") is None or shutil.which("ptxas") is None:
        pytest.skip("no nvcc or ptxas; the packages nvidia-cuda-nvcc, -crt, nvidia-nvvm and -cuda-runtime have them")
    for format in ("cuda", "ptx"):
        export_program(work_of(), format, tmp_path)
    for options in ((), ("-DELEMENT=int8_t", "-DSUM=int32_t")):
        subprocess.run(["nvcc", *options, "-c", tmp_path / "products.cu", "-o", tmp_path / "a.o"], check=True)
    subprocess.run(["ptxas", "-arch=sm_80", tmp_path / "products.ptx", "-o", tmp_path / "a.cubin"], check=True)


def test_every_format_names_each_shape_once(tmp_path):
    digest = network_digest(work_of())
    kernel = {"gem5-c": "KERNEL {}(", "cuda": "__global__ void {}(", "ptx": ".visible .entry {}("}
    assert set(kernel) == set(PROGRAM_FORMATS)
    for format, form in kernel.items():
        files = export_program(work_of(), format, tmp_path / format)
        text = files[0].read_text()
        for shape in ("m33_n17_k40", "m5_n1_k17"):
            assert text.count(form.format(f"gemm_{shape}_{digest}")) == 1
        assert not re.search(r"@[A-Z0-9]+@", "".join(file.read_text() for file in files))
        assert files[-1].name == "workloads.json" and read_workloads(files[-1]) == [work_of()]


def test_names_of_layers_cannot_break_a_program(tmp_path):
    shapes = [('fc*/ "\\\n%s', "forward", 2, 2, 2)]
    for format in PROGRAM_FORMATS:
        text = "".join(path.read_text() for path in export_program(work_of(shapes), format, tmp_path)[:-1])
        assert '"fc?/ ???%s forward"' in text or (format == "ptx" and "fc?/ ???%s" in text)


@pytest.mark.parametrize("name", ["products.c", "workloads.json"])
def test_files_of_others_are_not_replaced(tmp_path, name):
    (tmp_path / name).write_text("mine")
    with pytest.raises(ValueError, match=f"{name} (was not written by|is of no program)"):
        export_program(work_of(), "gem5-c", tmp_path)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]
    (tmp_path / name).unlink()
    for format in ("gem5-c", "ptx"):
        export_program(work_of(), format, tmp_path)
    assert "cuModuleLoad" in (tmp_path / "products.c").read_text()


def test_what_no_program_computes_is_refused(tmp_path):
    with pytest.raises(ValueError, match="unknown program format 'cude'; did you mean 'cuda'"):
        export_program(work_of(), "cude", tmp_path)
    with pytest.raises(ValueError, match="has no matrix products"):
        export_program(work_of(()), "cuda", tmp_path)
    long = work_of((("fc", "forward", 1, 1, 2**22 + 1),))
    with pytest.raises(ValueError, match=r"layer 'fc', forward: K is 4194305, and sums of more than 4194304 are not"):
        export_program(long, "gem5-c", tmp_path)
    wide = work_of((("fc", "forward", 1, 16 * 65535 + 1, 1),))
    with pytest.raises(ValueError, match="N is 1048561, and a grid covers up to 1048560"):
        export_program(wide, "ptx", tmp_path)
    assert list(tmp_path.iterdir()) == []


# -- whose log ---------------------------------------------------------------------------------------------------------
def test_the_digest_is_of_the_products_and_not_of_the_design():
    digest = network_digest(work_of())
    assert re.fullmatch("[0-9a-f]{8}", digest)
    assert digest == network_digest(work_of(design="other", bits=8)) == network_digest(replace(work_of(), network="n"))
    others = [work_of(batch=9), work_of(SHAPES[::-1]), work_of(SHAPES[:2]), work_of(counts=(1, 2, 1))]
    assert len({digest, *map(network_digest, others)}) == 5


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("gemm_m33_n17_k40_0123abcd", (33, 17, 40)),
        ("_Z25gemm_m33_n17_k40_0123abcdPKfS0_Pf", (33, 17, 40)),
        ("gemm_m33_n17_k40_0123abcde", None),
        ("gemm_m0_n17_k40_0123abcd", None),
        ("gemm_m33_n17_k40", None),
    ],
)
def test_names_of_products(text, shape):
    found = read_product_name(text)
    assert (None if found is None else (found.m, found.n, found.k)) == shape


def test_a_log_of_the_network_is_taken_product_by_product(tmp_path):
    work = work_of((*SHAPES[:2], *SHAPES[:2]))  # repeats within one iteration: only the workload tells
    path = log(tmp_path / "a.log", 2 * names_of(work))
    alone, time = read_timings(path)["a"], read_timings(path, workload=work)["a"]
    assert alone.iterations == 4 and time.samples == (1000 / 1e9, 2600 / 1e9)
    assert "was given to compare it with; give the one that was exported" in alone.detail["network"]
    digest = network_digest(work)
    assert time.detail["network"] == f"kernels are those of net, batch 8, digest {digest}, product by product"
    assert time.detail["iterations"] == "2 iterations of 4 launches, the products of the workload"
    assert read_timings(path, workload=work, iterations=2)["a"].samples == time.samples
    for options, message in (
        ({"iterations": 4}, "come 2 times, where --iterations says 4"),
        ({"marker": "gemm"}, "leave --marker out"),
    ):
        with pytest.raises(ValueError, match=message):
            read_timings(path, workload=work, **options)


@pytest.mark.parametrize("copy", ["[CUDA memcpy {}-to-{}]", "[CUDA memcpy {0:.1}to{1:.1}]"])
def test_copies_of_an_exported_program_are_no_part_of_an_iteration(tmp_path, copy):
    """Operands go to the device, each product's result comes back and is checked by the host, which takes longest."""
    host, device = copy.format("Host", "Device"), copy.format("Device", "Host")
    rows, at = ["Start (ns),Duration (ns),CorrId,Bytes (MB),Name", f"0,700,1,0.1,{host}", f"800,700,2,0.1,{host}"], 2000
    for iteration in range(2):
        for index, name in enumerate(names_of(work_of())):
            rows.append(f"{at},{1000 * (index + 1) + iteration},3,,{name}")
            rows.append(f"{at + 5000},600,4,0.1,{device}")
            at += 9_000_000
    (tmp_path / "a.csv").write_text("\n".join(rows) + "\n")
    launches = len(names_of(work_of()))
    want = sum(1000 * (index + 1) for index in range(launches))
    for options in ({"workload": work_of()}, {"iterations": 2}):
        time = read_timings(tmp_path / "a.csv", **options)["a"]
        assert time.samples == (want / 1e9, (want + launches) / 1e9)
        assert time.detail["time"].endswith(f"left out, and {2 + 2 * launches} copies of operands and results")
        assert time.detail["launches"] == 2 * launches


def test_a_log_of_gpgpusim_itself():
    from softnum.train import load_design, workload

    path = DATA / "gpgpusim/mlp-qv100.log.gz"
    time = read_timings(path, workload=workload("mlp", load_design("c-wang-fp8"), 32))["mlp-qv100"]
    assert time.samples == ((10734 + 15646 + 6756 + 8025 + 8220) / 1.132e9,)
    assert time.detail["network"].startswith("kernels are those of mlp, batch 32, digest 60c3ec13, product by product")
    with pytest.raises(ValueError, match="with digest 60c3ec13, where mlp, batch 16 has digest"):
        read_timings(path, workload=workload("mlp", load_design("a-float32"), 16))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda names: [name[:-8] + "00000000" for name in names],
         r"a\.log, line 4: kernel 'gemm_m33_n17_k40_00000000' is of the network with digest 00000000, where net, batch "
         r"8 has digest [0-9a-f]{8}; name the workload"),
        (lambda names: [names[0], names[2][:-8] + "00000000", *names[2:]],
         r"a\.log, line 11: kernel 'gemm_m33_n17_k40_00000000' is of another network than 'gemm_m33_n17_k40_\w+', line "
         "4; expected the log of one program"),
        (lambda names: [names[0], names[2], names[1]],
         r"line 11: kernel 'gemm_m33_n17_k40_\w+' is product 2 of iteration 1, where net, batch 8 has fc2 forward, M "
         "5, N 1, K 17"),
        (lambda names: names[:2], "line 11: after 0 whole iterations, 2 of the 3 products of net, batch 8"),
        (lambda names: names + names[:1], "line 25: after 1 whole iterations, 1 of the 3 .* --allow-unfinished"),
        (lambda names: [names[0], "relu", *names[1:], *names], "come 2 times, and one iteration of 7 launches: .* say"),
    ],
)  # fmt: skip
def test_a_log_of_another_network_is_refused(tmp_path, change, message):
    with pytest.raises(ValueError, match=message):
        read_timings(log(tmp_path / "a.log", change(names_of(work_of()))), workload=work_of())


def test_other_kernels_may_be_among_the_products(tmp_path):
    names = names_of(work_of())
    time = read_timings(log(tmp_path / "a.log", 2 * [*names[:1], "relu", *names[1:]]), workload=work_of())["a"]
    assert time.iterations == 2 and time.detail["network"].endswith("2 launches of other kernels are beside them")


def test_a_marker_in_the_middle_of_an_iteration_is_an_error(tmp_path):
    names = names_of(work_of())
    path = log(tmp_path / "a.log", [*names, "fill", *names, "fill"])
    with pytest.raises(ValueError, match="has 3 products, and .* which makes iterations of 3, 0; choose as --marker"):
        read_timings(path, workload=work_of(), marker="fill")


def test_an_unfinished_iteration_is_left_out(tmp_path):
    names = names_of(work_of())
    path = log(tmp_path / "a.log", [*names, *names[:2]], ended=False)
    time = read_timings(path, workload=work_of(), allow_unfinished=True)["a"]
    assert (
        time.samples == (600 / 1e9,) and "2 launches after them are of an unfinished one" in time.detail["iterations"]
    )


def test_a_log_without_names_is_warned_of(tmp_path):
    path = log(tmp_path / "a.log", ["sgemm", "relu"])
    for options in ({}, {"workload": work_of()}):
        said = read_timings(path, **options)["a"].detail["network"]
        assert said.startswith("warning: nothing in the file shows of which network it is; softnum workloads exports")


def test_a_profile_of_a_gpu_is_compared_too(tmp_path):
    work = work_of()
    text = (DATA / "ncu/metrics.csv").read_text()
    kernels = ("gemm(const float *, int)", "relu(float *)", "update(float *, float)")
    for kernel, name in zip(kernels, names_of(work), strict=True):
        text = text.replace(kernel, name)
    path = tmp_path / "a.csv"
    path.write_text(text)
    time = read_timings(path, workload=work)["a"]
    assert time.iterations == 2 and time.detail["network"].startswith("kernels are those of net, batch 8, digest")
    with pytest.raises(ValueError, match=r"a\.csv, line 6: kernel .* where net, batch 16 has digest"):
        read_timings(path, workload=work_of(batch=16))
    plain = DATA / "ncu/metrics.csv"
    assert "network" not in read_timings(plain)["metrics"].detail
    assert read_timings(plain, workload=work)["metrics"].detail["network"].startswith("warning: nothing in the file")


def test_each_design_is_compared_with_its_own_workload(tmp_path):
    small, large = work_of(), work_of(batch=16)
    files = [("small", log(tmp_path / "s.log", names_of(small))), ("large", log(tmp_path / "l.log", names_of(large)))]
    works = {"small": small, "large": large}
    assert list(gather_timings(files, workloads=works)) == ["small", "large"]
    points = [DesignPoint(name, None, ()) for name in works]
    (variant,) = study_variants(points, baseline="small", out=tmp_path, timings=files, workloads=works)
    assert any(line.startswith("network of large: kernels are those of net, batch 16") for line in variant.assumptions)
    with pytest.raises(ValueError, match="s.log, line 4: .* where net, batch 16 has digest"):
        gather_timings(files, workloads={"small": large, "large": small})


# -- commands ----------------------------------------------------------------------------------------------------------
def test_the_commands_export_and_compare(tmp_path):
    made = softnum(
        "workloads", "mlp", "--batch", 4, "--format", "cuda", "--out", tmp_path / "one", "--stage", "forward"
    )
    assert made.exit_code == 0 and "fc2" in made.stdout and "backward" not in made.stdout
    (work,) = read_workloads(tmp_path / "one/workloads.json")
    path = log(tmp_path / "a.log", names_of(work))
    right = softnum("timings", path, "--workload", tmp_path / "one/workloads.json")
    assert right.exit_code == 0 and "Network: kernels are those of mlp, batch 4, digest" in right.stdout
    softnum("workloads", "mlp", "--batch", 8, "--format", "gem5-c", "--out", tmp_path / "two")
    other = softnum("timings", path, "--workload", tmp_path / "two/workloads.json")
    assert other.exit_code == 2 and network_digest(work) in other.stderr
    plain = tmp_path / "t.csv"
    plain.write_text("iteration,seconds\n1,0.5\n")
    said = softnum("timings", f"d={plain}", "--workload", tmp_path / "two/workloads.json")
    assert "Network: warning: nothing in such a file can be compared with --workload." in said.stdout


def test_narrow_and_sparse_operands_are_warned_of(tmp_path):
    made = softnum("workloads", "mlp", "--design", "c-wang-fp8", "--format", "cuda", "--out", tmp_path)
    said = " ".join(made.stdout.split())
    assert "Warning: the program's operands are float32, 32 bits, and those of c-wang-fp8 have 16: it moves" in said
    assert "C and CUDA take -DELEMENT=int16_t -DSUM=int32_t." in said
    gemm = Gemm("fc", "forward", 4, 4, 8, 32, sparsity=("dense", "2:4"))
    sparse = Workload("n", "d", 4, (Operation("fc", "forward", "gemm", 1, 1, 1, (), gemm),))
    write_workloads(tmp_path / "sparse.json", [sparse])
    made = softnum("workloads", tmp_path / "sparse.json", "--format", "ptx", "--out", tmp_path)
    assert made.exit_code == 0 and "Warning: sparse operands are exported as dense ones" in made.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "a network is missing"),
        (("mlp",), "--format is missing"),
        (("mlp", "--format", "cuda"), "--out is missing"),
        (("mlp", "--format", "ptxx", "--out", "x"), "did you mean 'ptx'"),
        (
            ("mlp", "--format", "cuda", "--out", "x", "--layer", "fc9"),
            "no matrix product of 'fc9'; did you mean",
        ),
        (("mlp", "--format", "cuda", "--out", "x", "--design", "a-float32,b-binary16"), "2 workloads, a-float32 at"),
        (("mlp", "--format", "cuda", "--out", "x", "--layer", "fc1", "--stage", "update"), "no matrix product of 'upd"),
    ],
)
def test_what_the_command_refuses(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    done = softnum("workloads", *arguments)
    assert done.exit_code == 2 and message in " ".join(done.stderr.split())
    assert list(tmp_path.iterdir()) == []
