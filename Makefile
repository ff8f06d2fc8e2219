# make help lists what there is.
PYTHON ?= python3
CC ?= cc
WARNINGS = -Wall -Wextra -Wconversion -Wshadow -Wmissing-prototypes -Werror
CFLAGS = -std=c11 -O2 -g -ffp-contract=off -fno-math-errno $(WARNINGS) -Icsrc
SANITIZE = -fsanitize=address,undefined -fno-sanitize-recover=all
CSRC = csrc/elementwise.c csrc/kernels.c csrc/isa_portable.c csrc/isa_avx2.c csrc/isa_avx512.c
HEADERS = $(wildcard csrc/*.h csrc/softnum/*.h)
C_FILES = $(wildcard csrc/*.[ch] csrc/softnum/*.h csrc/tests/*.c)

.PHONY: help build test test-c test-slow gpu gpu-wheels bench lint format

help: ## Show this list.
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

build: ## Install in the current environment, editable, with what the tests need.
	$(PYTHON) -m pip install -e '.[test]'

test: ## Run the tests (fast tier).
	$(PYTHON) -m pytest

test-slow: ## Run the slow tier as well.
	$(PYTHON) -m pytest -m 'not gpu'

test-c: csrc/tests/test_core csrc/tests/test_core_san ## Build and run the C tests, plain and under ASan and UBSan.
	csrc/tests/test_core
	csrc/tests/test_core_san

csrc/tests/test_core: csrc/tests/test_core.c $(CSRC) $(HEADERS)
	$(CC) $(CFLAGS) -o $@ csrc/tests/test_core.c $(CSRC)

csrc/tests/test_core_san: csrc/tests/test_core.c $(CSRC) $(HEADERS)
	$(CC) $(CFLAGS) $(SANITIZE) -o $@ csrc/tests/test_core.c $(CSRC)

gpu: ## Test the kernels on this machine's GPU and print their figures (WHEELS=folder of wheels to install first).
	tests/kernels/run_gpu.sh $(WHEELS)

gpu-wheels: ## Download the wheels that an offline GPU machine lacks (WHEELS=folder).
	tests/kernels/run_gpu.sh --download $(WHEELS)

bench: ## Measure the speed, as ratios to baselines in the same run.
	$(PYTHON) -m benchmarks

lint: ## Check the style of Python and C.
	ruff check .
	ruff format --check .
	clang-format --dry-run -Werror $(C_FILES)

format: ## Apply the style to Python and C.
	ruff check --fix .
	ruff format .
	clang-format -i $(C_FILES)
