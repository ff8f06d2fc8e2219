#!/usr/bin/env bash
# The GPU's tests and figures, on a machine that may be offline.
#
#   tests/kernels/run_gpu.sh --download [FOLDER [VERSION [PACKAGE...]]]
#       fetch into FOLDER the wheels that the GPU machine lacks, for its Python VERSION (3.12): all, or the PACKAGEs named
#   tests/kernels/run_gpu.sh [FOLDER]
#       there: install them, build softnum, run the GPU tests and print the figures
#
# FOLDER is build/gpu-wheels, which git ignores; carry it along with the checkout. Nothing is installed outside
# build/gpu-site. Without wheels in FOLDER, what is installed already is used. PYTHON=... names another interpreter.
set -euo pipefail
cd "$(dirname "$0")/../.."
python=${PYTHON:-python3}

if [ "${1:-}" = --download ]; then
    folder=${2:-build/gpu-wheels}
    version=${3:-3.12}
    platforms=()
    for n in 39 35 34 31 28 27 24 17; do platforms+=(--platform "manylinux_2_${n}_x86_64"); done
    mkdir -p "$folder"
    packages=("${@:4}")
    # the extra "cuda" without CUDA's own libraries, which a machine with a toolkit or PyTorch has; and the build's needs
    if [ ${#packages[@]} = 0 ]; then
        packages=('numpy>=2.0,<2.5' 'numba>=0.67' llvmlite 'numba-cuda>=0.30.4,<0.31' 'cuda-core<2' cuda-pathfinder
            'setuptools>=77' 'cython>=3.1' 'pytest>=8')
    fi
    "$python" -m pip download -q --no-deps --only-binary=:all: --python-version "$version" --implementation cp \
        "${platforms[@]}" --platform manylinux2014_x86_64 -d "$folder" "${packages[@]}"
    du -sh "$folder"
    exit
fi

folder=${1:-build/gpu-wheels}
site=$PWD/build/gpu-site
rm -rf "$site"
mkdir -p "$site"
export PYTHONPATH="$site" PIP_DISABLE_PIP_VERSION_CHECK=1
unset NUMBA_ENABLE_CUDASIM
if compgen -G "$folder/*.whl" > /dev/null; then
    "$python" -m pip install -q --no-index --no-deps --no-compile --upgrade --target "$site" "$folder"/*.whl
fi
"$python" -m pip install -q --no-index --no-deps --no-build-isolation --no-compile --upgrade --target "$site" .

# -P: the checkout's own folders must not hide the package just built
"$python" -P -m pytest -m gpu tests/kernels tests/train -p no:cacheprovider
"$python" -P -m softnum.kernels.figures
