#!/usr/bin/env bash
# The GPU's tests, the sanitizer's and the figures, in under 10 minutes, on a machine that may be offline.
#
#   tests/kernels/run_gpu.sh --download [FOLDER [VERSION [PACKAGE...]]]
#       fetch into FOLDER the wheels that the GPU machine lacks, for its Python VERSION (3.12): all, or the PACKAGEs named.
#       All are 100 MB, 60 of them llvmlite; where Numba is installed, these 25 MB do:
#       'numpy<2.5' 'numba-cuda>=0.30.4,<0.31' 'cuda-core<2' cuda-pathfinder cffi pycparser lark gymnasium
#   tests/kernels/run_gpu.sh --pack [FOLDER]
#       make one archive of them, site.tar.xz, a third smaller, where what is carried along must be small
#   tests/kernels/run_gpu.sh [FOLDER]
#       there: install them, build softnum, run the tests that need a GPU, a selection of them under compute-sanitizer
#       (memcheck, racecheck; where it is found), and the figures
#
# FOLDER is build/gpu-wheels, which git ignores; carry it along with the checkout. Nothing is installed outside
# build/gpu-site. Without wheels in FOLDER, what is installed already is used. PYTHON=... names another interpreter;
# STEPS="build test sanitize bench" are the steps, in the order in which they run, of which some may be left out; "record"
# is one more, which records what all matrix instructions compute. They write into build/gpu, or REPORTS=..., as they go,
# for a run that may be cut: tests.txt, failures.txt (how each test failed), passed.txt, memcheck.txt, racecheck.txt,
# bench_gpu.json. AGAIN=1 leaves out the tests that passed.txt lists, which passed with the same build.
set -euo pipefail
cd "$(dirname "$0")/../.."
python=${PYTHON:-python3}
steps=${STEPS:-build test sanitize bench}

if [ "${1:-}" = --download ]; then
    folder=${2:-build/gpu-wheels}
    version=${3:-3.12}
    platforms=()
    for n in 39 35 34 31 28 27 24 17; do platforms+=(--platform "manylinux_2_${n}_x86_64"); done
    mkdir -p "$folder"
    packages=("${@:4}")
    # the extra "cuda" without CUDA's own libraries, which a machine with a toolkit or PyTorch has; and the build's needs
    if [ ${#packages[@]} = 0 ]; then
        packages=('numpy>=2.0,<2.5' 'numba>=0.67' llvmlite 'numba-cuda>=0.30.4,<0.31' 'cuda-bindings<14' 'cuda-core<2'
            cuda-pathfinder cffi pycparser packaging
            rich markdown-it-py mdurl pygments typer shellingham annotated-doc click
            'setuptools>=77' 'cython>=3.1'
            'pytest>=9' pluggy iniconfig 'pytest-xdist>=3.6' execnet hypothesis sortedcontainers
            lark gymnasium farama-notifications cloudpickle typing-extensions)
    fi
    "$python" -m pip download -q --no-deps --only-binary=:all: --python-version "$version" --implementation cp \
        "${platforms[@]}" --platform manylinux2014_x86_64 -d "$folder" "${packages[@]}"
    du -sh "$folder"
    exit
fi

if [ "${1:-}" = --pack ]; then
    folder=${2:-build/gpu-wheels}
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    for wheel in "$folder"/*.whl; do "$python" -m zipfile -e "$wheel" "$scratch"; done
    tar -C "$scratch" -cJf "$folder/site.tar.xz" .
    rm "$folder"/*.whl
    du -sh "$folder"
    exit
fi

folder=${1:-build/gpu-wheels}
site=$PWD/build/gpu-site
reports=${REPORTS:-$PWD/build/gpu}
mkdir -p "$site" "$reports"
reports=$(cd "$reports" && pwd)
# behind the packages, for benchmarks: the checkout's own folder of that name must not hide the package just built
export PYTHONPATH="$site:$PWD" PIP_DISABLE_PIP_VERSION_CHECK=1 NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS=0
export PYTHONUNBUFFERED=1 # what was said before a cut is in the reports
unset NUMBA_ENABLE_CUDASIM
# where no package holds NVVM, that of a toolkit
if [ -z "${CUDA_HOME:-}${CUDA_PATH:-}" ] && [ -d /usr/local/cuda/nvvm ]; then export CUDA_HOME=/usr/local/cuda; fi
step() { printf '\n== %s\n' "$*"; }
has() { case " $steps " in *" $1 "*) true ;; *) false ;; esac }
failed=0

if has build; then
    step "build"
    rm -rf "$site"
    mkdir -p "$site"
    if [ -f "$folder/site.tar.xz" ]; then tar -C "$site" -xJf "$folder/site.tar.xz"; fi
    if compgen -G "$folder/*.whl" > /dev/null; then
        "$python" -m pip install -q --no-index --no-deps --no-compile --upgrade --target "$site" "$folder"/*.whl
    fi
    "$python" -m pip install -q --no-index --no-deps --no-build-isolation --no-compile --upgrade --target "$site" \
        -C--global-option=build_ext "-C--global-option=-j$(nproc)" .
fi

# -P: the checkout's own folders must not hide the package just built
run() { "$python" -P "$@"; }

if [ "${steps// /}" != build ]; then # what is missing is said once, not by each test
    run - << 'EOF'
import sys

from softnum.train.engine.devices import check_device

try:
    check_device("cuda")
except ValueError as error:
    sys.exit(f"run_gpu.sh: {error}")
EOF
fi

if has test; then
    step "tests on the GPU"
    # most of the time goes into compiling kernels, on one core of the host for each process
    many=()
    if "$python" -c 'import xdist' 2> /dev/null; then many=(-n "${PROCESSES:-$(nproc)}" --dist worksteal); fi
    if [ -z "${AGAIN:-}" ]; then rm -f "$reports/passed.txt"; fi
    run -m pytest -m gpu tests/kernels tests/train/test_train_cuda*.py tests/torch/test_torch_cuda.py -p no:cacheprovider -p no:benchmark "${many[@]}" \
        --durations=10 --failures "$reports/failures.txt" --resume "$reports/passed.txt" 2>&1 | tee "$reports/tests.txt" \
        || { [ "$?" = 5 ] && [ -n "${AGAIN:-}" ]; } || failed=1 # 5: none was left
fi

sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda*/bin/compute-sanitizer 2> /dev/null | head -1 || true)
declare -A sanitizing=()
if has sanitize && [ -z "$sanitizer" ]; then step "compute-sanitizer is not installed: left out"; fi
if has sanitize && [ -n "$sanitizer" ]; then
    step "compute-sanitizer"
    for tool in memcheck racecheck; do # a process each, which mostly compiles kernels
        SOFTNUM_SMALL=1 "$sanitizer" --tool "$tool" --error-exitcode 9 "$python" -P -m pytest -m gpu -q -p no:cacheprovider \
            tests/kernels/test_gpu_sizes.py -k 'test_units or test_presets or test_convolutions or test_blocks' > "$reports/$tool.txt" 2>&1 &
        sanitizing[$tool]=$!
    done
    for tool in "${!sanitizing[@]}"; do
        wait "${sanitizing[$tool]}" || failed=1
        step "compute-sanitizer: $tool"
        tail -8 "$reports/$tool.txt"
    done
fi

if has bench; then
    step "figures"
    run -m benchmarks.bench_gpu --out "$reports/bench_gpu.json" 2>&1 | tee "$reports/bench_gpu.txt" || failed=1
fi

if has record; then
    step "what the matrix instructions compute"
    run -m softnum.kernels.recording "$reports/recording" || failed=1
fi
exit "$failed"
