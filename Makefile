# make help lists what there is.
PYTHON ?= python3
CC ?= cc
CLANG ?= clang
ARM_CC ?= aarch64-linux-gnu-gcc
QEMU ?= qemu-aarch64
ZIG ?= $(PYTHON) -m ziglang
CROSS ?= aarch64-linux-gnu aarch64-macos x86_64-macos x86_64-windows-gnu
MACHINE := $(shell uname -m)
PROCESSORS ?= x86_64 aarch64
TIME ?= 60
JOBS ?= 2
FUZZ ?= 400000
WARNINGS = -Wall -Wextra -Wconversion -Wshadow -Wmissing-prototypes -Werror
CFLAGS = -std=c11 -O2 -g1 -ffp-contract=off -fno-math-errno $(WARNINGS) -Icsrc -Ifuzz
SANITIZE = -O1 -fsanitize=address,undefined -fno-sanitize-recover=all
# of csrc's texts for instruction sets, which take most of the time to compile
SANITIZE_LANES ?= $(SANITIZE)
# every check there is, but of what C defines and is meant: arithmetic modulo 2^64
UBSAN = -O1 -fsanitize=undefined,float-divide-by-zero,float-cast-overflow -fno-sanitize-recover=all
UBSAN_CLANG = -fsanitize=integer -fno-sanitize=unsigned-integer-overflow,unsigned-shift-base
CSRC = $(sort $(shell find csrc -name '*.c' -not -path 'csrc/dpi/*' -not -path 'csrc/tests/*'))
DPI = $(patsubst %,csrc/dpi/%.c,blocks built defined dots instructions names operations units)
DPI_HEADERS = $(shell find csrc/dpi csrc/softnum -name '*.h')
VPI_INCLUDE ?= $(patsubst %/vpi_user.h,%,$(firstword $(wildcard /usr/include/iverilog/vpi_user.h /usr/local/include/iverilog/vpi_user.h /usr/include/vpi_user.h)))
, := ,
C_FILES = $(sort $(shell find csrc fuzz examples/c softnum/jax docs/playground -name '*.[ch]'))
TESTED = $(CSRC) csrc/tests/test_core.c
# gemm takes half of the time, and the fuzz driver has it
COMPARED = $(filter-out csrc/library/% csrc/targets/gemm_% $(patsubst %,csrc/products/%/%,gemm tapered tables),$(CSRC)) csrc/tests/test_isas.c
FUZZED = $(CSRC) $(filter-out fuzz/driver.c,$(wildcard fuzz/*.c))

.PHONY: help build wheel wheels $(PROCESSORS) sbom dpi lib check test test-c test-c-san test-c-arm test-isas-arm cross test-threads ubsan-exhaustive test-jax test-mutants test-slow test-exhaustive fuzz-core fuzz-formats gpu gpu-wheels bench docs playground lint format

help: ## Show this list.
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

build: ## Install in the current environment, editable, with what the tests need.
	$(PYTHON) -m pip install -e '.[test]'

# the largest size of a wheel, in millions of bytes: what GCC makes for x86-64 has loops for three instruction sets
WHEEL_LIMIT = $(if $(filter aarch64,$@),6,8.5)
PACK = $(PYTHON) .ci/pack.py --to dist --limit $(WHEEL_LIMIT)
wheel: ## Build in dist the source distribution and, from it, a wheel for Linux on x86-64 and every Python from 3.11 on (needs the extra wheel).
	rm -rf build/wheel
	LDFLAGS=-s $(PYTHON) -m build --outdir build/wheel .
	$(PYTHON) -m auditwheel repair -w build/wheel/repaired build/wheel/softnum-*.whl
	$(PACK) build/wheel/repaired/*.whl
	cp build/wheel/softnum-*.tar.gz dist

# For the processor of this machine, zig links the objects of make build with an older glibc. For another it compiles them too, and NumPy's
# headers are those in its wheel. Python's are those of this Python, a 64-bit Linux like the targets: of what its pyconfig.h says about
# the machine, the stable ABI's headers use the sizes of types, and those are the same.
FOREIGN = _PYTHON_HOST_PLATFORM=linux-$(1) SOFTNUM_NUMPY_HEADERS=build/numpy/$(1)/numpy/_core/include \
	CC="$(ZIG) cc -target $(2)" AR="$(ZIG) ar" CFLAGS="-DNDEBUG -fwrapv -O2 -ffunction-sections -fdata-sections"
wheels: $(PROCESSORS) ## Build in dist wheels for Linux with glibc 2.28, on x86-64 and 64-bit Arm (needs the extra wheels).
$(PROCESSORS):
	rm -rf build/wheels/$@
	$(if $(filter $@,$(MACHINE)),,rm -rf build/numpy/$@ && $(PYTHON) -m pip download -q --no-deps --only-binary :all: \
		--platform manylinux_2_27_$@ --platform manylinux_2_28_$@ -d build/numpy/$@ \
		"numpy==$$($(PYTHON) -c 'import numpy; print(numpy.__version__)')" \
		&& $(PYTHON) -m zipfile -e build/numpy/$@/numpy-*.whl build/numpy/$@)
	$(if $(filter $@,$(MACHINE)),,$(call FOREIGN,$@,$@-linux-gnu.2.28)) LDFLAGS="-s -Wl,--gc-sections" \
		LDSHARED="$(ZIG) cc -target $@-linux-gnu.2.28 -shared" \
		$(PYTHON) -m build --wheel --no-isolation --outdir build/wheels/$@ .
	$(PYTHON) -m auditwheel repair -w build/wheels/$@/repaired build/wheels/$@/softnum-*.whl
	$(PYTHON) -m abi3audit --strict build/wheels/$@/repaired/*.whl
	$(PACK) build/wheels/$@/repaired/*.whl

sbom: ## Write in dist the list (SBOM, CycloneDX) of what a `pip install` of the wheel in dist brings (needs the extra release).
	rm -rf build/sbom
	$(PYTHON) -m venv --without-pip build/sbom
	$(PYTHON) -m pip --python build/sbom/bin/python install -q $(firstword $(wildcard dist/softnum-*.whl) dist/softnum.whl)
	$(PYTHON) -m cyclonedx_py environment --pyproject pyproject.toml --mc-type library --sv 1.6 --of JSON \
		--output-reproducible -o dist/softnum.cdx.json build/sbom/bin/python

dpi: build/dpi/libsoftnum_dpi.so $(if $(VPI_INCLUDE),build/dpi/softnum_vpi.vpi) ## Build the reference model for simulators: DPI-C, and VPI where vpi_user.h is found (VPI_INCLUDE=folder).
	cp csrc/dpi/softnum_modes.vh csrc/dpi/softnum_dpi.hpp csrc/dpi/softnum_dpi_units.hpp build/dpi
	grep -ohE 'X\([a-z_0-9]+, [0-9]\)' csrc/softnum/operations/operations.h csrc/softnum/operations/elementary.h \
		> build/dpi/operations
	grep -ohE 'X\([a-z_0-9]+, [0-9]\)' csrc/dpi/softnum_dpi.h | cat build/dpi/operations - \
		| sed -E 's/X\((.*), (.)\)/  `SOFTNUM_\2(\1)/' > build/dpi/package
	sed -e '/SN_OPERATIONS:/{r build/dpi/package' -e 'd}' csrc/dpi/softnum_pkg.sv > build/dpi/softnum_pkg.sv
	printf '%s\n' '#include <stdint.h>' 'typedef uint32_t sn_u32;' 'typedef uint64_t sn_u64;' 'typedef int64_t sn_i64;' \
		"#define SN_OPERATIONS(X) $$(tr '\n' ' ' < build/dpi/operations)" > build/dpi/core
	sed -e '/include "softnum\/operations/{r build/dpi/core' -e 'd}' csrc/dpi/softnum_dpi.h > build/dpi/softnum_dpi.h
	rm build/dpi/operations build/dpi/package build/dpi/core
	@echo build/dpi: $(if $(VPI_INCLUDE),DPI-C and VPI,DPI-C; no VPI: no vpi_user.h was found)

build/dpi/libsoftnum_dpi.so: $(DPI) $(DPI_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -fPIC -shared -fvisibility=hidden -o $@ $(DPI)

build/dpi/softnum_vpi.vpi: csrc/dpi/softnum_vpi.c $(DPI) $(DPI_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -fPIC -shared -fvisibility=hidden -I$(VPI_INCLUDE) -o $@ $< $(DPI)

CLIB = build/clib
lib: $(CLIB)/libsoftnum.a $(CLIB)/libsoftnum.so $(CLIB)/softnum.pc ## Build the C library (csrc/softnum.h), static and shared, with a pkg-config file; CORE=build/objects/libsoftnum.a takes what `make build` compiled.

CORE ?= build/library/core.a
LIB_FLAGS = -O3 -g0 -fPIC -fvisibility=hidden -fno-trapping-math -falign-functions=64 -falign-loops=32
build/library/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LIB_FLAGS) -MMD -MP -c -o $@ $<

build/library/core.a: $(CSRC:%.c=build/library/%.o)
	rm -f $@
	$(AR) rcs $@ $^

$(CLIB)/libsoftnum.a: $(CORE) csrc/softnum.h
	@mkdir -p $(@D)/include
	cp csrc/softnum.h $(@D)/include
	cp $< $@

# only what softnum.h declares is visible; what calls it inside the library does not go by the linker's table
WHOLE = $(if $(filter Darwin,$(shell uname)),-Wl$(,)-force_load$(,)$(1),-Wl$(,)--whole-archive $(1) -Wl$(,)--no-whole-archive -Wl$(,)-Bsymbolic -Wl$(,)-soname$(,)libsoftnum.so)
$(CLIB)/libsoftnum.so: $(CORE)
	@mkdir -p $(@D)
	$(CC) -shared -pthread $(call WHOLE,$<) -o $@

# the folder may be moved, or copied to where a system keeps libraries
$(CLIB)/softnum.pc: csrc/softnum.h Makefile
	@mkdir -p $(@D)
	printf '%s\n' 'Name: softnum' 'Description: Number formats and their arithmetic over arrays, bit for bit' \
		"Version: $$(sed -n 's/^#define SOFTNUM_VERSION "\(.*\)"/\1/p' $<)" \
		'Libs: -L$${pcfiledir} -lsoftnum' 'Libs.private: -pthread' 'Cflags: -I$${pcfiledir}/include' > $@

check: ## Run the C tests and the quick tier of the Python tests (under 2 minutes; JOBS=processes).
	@$(MAKE) --no-print-directory -j$(JOBS) csrc/tests/test_core
	csrc/tests/test_core
	$(PYTHON) -m pytest -m quick -q -n $(JOBS) --dist worksteal

test: ## Run the tests (full tier, what CI runs).
	$(PYTHON) -m pytest -n auto --dist loadfile

test-jax: ## Run the tests of softnum.jax (needs the extra jax and a C compiler).
	$(PYTHON) -m pytest tests/jax

test-slow: ## Run the slow tier as well (minutes).
	$(PYTHON) -m pytest -m 'not exhaustive and not gpu'

test-exhaustive: ## Run the exhaustive tier (an hour and a half); where it was interrupted, it goes on.
	$(PYTHON) -m pytest -m exhaustive -n $(JOBS) --resume build/exhaustive.txt tests/core

test-mutants: ## Plant faults in csrc and see that tests fail (half an hour; JOBS=at a time).
	$(PYTHON) tests/mutants.py --jobs $(JOBS)

test-c: csrc/tests/test_core build/test/test_isas test-c-san ## Build and run the C tests, plain and under ASan and UBSan, and a little fuzzing.
	csrc/tests/test_core
	build/test/test_isas > build/test/digests
	diff csrc/tests/test_isas.txt build/test/digests

test-c-san: csrc/tests/test_core_san fuzz/driver ## Those under ASan and UBSan alone.
	csrc/tests/test_core_san
	fuzz/driver -n $(FUZZ)

build/test/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -MMD -MP -c -o $@ $<

csrc/tests/test_core: $(TESTED:%.c=build/test/%.o)
	$(CC) $(CFLAGS) -o $@ $^

build/test/test_isas: $(COMPARED:%.c=build/test/%.o)
	$(CC) $(CFLAGS) -o $@ $^

LANES = $(1)/csrc/targets/%.o
$(call LANES,build/test) $(call LANES,build/arm): CFLAGS += -Wno-maybe-uninitialized
$(call LANES,build/library): CFLAGS += -Wno-unknown-warning-option -Wno-maybe-uninitialized -Wno-pass-failed

$(call LANES,build/san): SANITIZE := $(SANITIZE_LANES)
build/san/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(SANITIZE) -MMD -MP -c -o $@ $<

csrc/tests/test_core_san: $(TESTED:%.c=build/san/%.o)
	$(CC) $(CFLAGS) $(SANITIZE) -o $@ $^

build/ubsan/clang: CC = $(CLANG)
build/ubsan/clang: UBSAN += $(UBSAN_CLANG)
build/ubsan/gcc build/ubsan/clang: csrc/tests/test_exhaustive.c $(DPI) $(DPI_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(UBSAN) -o $@ $(filter %.c,$^)

ubsan-exhaustive: build/ubsan/gcc build/ubsan/clang ## Run all operations for all operands of small formats under UBSan, as gcc and as clang compile them (ten minutes).
	build/ubsan/clang
	build/ubsan/gcc

build/arm/%.o: %.c
	@mkdir -p $(@D)
	$(ARM_CC) $(CFLAGS) $(ARM_CFLAGS) -MMD -MP -c -o $@ $<

build/arm/test_core: $(TESTED:%.c=build/arm/%.o)
	$(ARM_CC) -static -o $@ $^

build/arm/test_isas: $(COMPARED:%.c=build/arm/%.o)
	$(ARM_CC) -static -o $@ $^

build/arm/driver: build/arm/fuzz/driver.o $(FUZZED:%.c=build/arm/%.o)
	$(ARM_CC) -static -o $@ $^

test-c-arm: build/arm/test_core build/arm/driver test-isas-arm ## Build the C tests for Arm's 64-bit processors, and run them, and a little fuzzing, under QEMU.
	$(QEMU) build/arm/test_core
	$(QEMU) build/arm/driver -n $(FUZZ)

test-isas-arm: build/arm/test_isas ## Those alone that compare NEON with the portable texts, and both with other processors.
	$(QEMU) build/arm/test_isas > build/arm/digests
	diff csrc/tests/test_isas.txt build/arm/digests

define CROSS_RULE
build/cross/$(1)/%.o: %.c
	@mkdir -p $$(@D)
	$$(ZIG) cc -target $(1) $$(CFLAGS) -Wno-pass-failed -MMD -MP -c -o $$@ $$<

endef
$(foreach target,$(CROSS),$(eval $(call CROSS_RULE,$(target))))

cross: $(foreach target,$(CROSS),$(CSRC:%.c=build/cross/$(target)/%.o)) ## Compile the C core for Arm, macOS and Windows with Clang, as zig packages it (pip install ziglang; minutes).
	@echo compiled for $(CROSS)

build/tsan/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -O1 -fsanitize=thread -MMD -MP -c -o $@ $<

csrc/tests/test_threads: $(patsubst %.c,build/tsan/%.o,$(filter-out csrc/products/% csrc/draw/% csrc/library/% csrc/targets/gemm_% csrc/targets/dots_%,$(CSRC)) csrc/tests/test_threads.c)
	$(CC) $(CFLAGS) -fsanitize=thread -pthread -o $@ $^

test-threads: csrc/tests/test_threads ## Build and run loops in threads under ThreadSanitizer (a minute to build).
	csrc/tests/test_threads

fuzz/driver: build/san/fuzz/driver.o $(FUZZED:%.c=build/san/%.o)
	$(CC) $(CFLAGS) $(SANITIZE) -o $@ $^

build/fuzz/%.o: %.c
	@mkdir -p $(@D)
	$(CLANG) $(CFLAGS) $(SANITIZE) -fsanitize=fuzzer-no-link -MMD -MP -c -o $@ $<

fuzz/core: $(FUZZED:%.c=build/fuzz/%.o)
	$(CLANG) $(CFLAGS) $(SANITIZE) -fsanitize=fuzzer -o $@ $^

-include $(shell find build/library build/test build/san build/arm build/cross build/tsan build/fuzz build/wasm -name '*.d' 2> /dev/null)

fuzz-core: fuzz/core ## Fuzz the C core with libFuzzer (needs clang; TIME=seconds).
	@mkdir -p build/fuzz/corpus build/fuzz/finds
	fuzz/core -max_total_time=$(TIME) -max_len=768 -artifact_prefix=build/fuzz/finds/ build/fuzz/corpus

fuzz-formats: ## Fuzz what reads text: format names, numbers, vector files, designs (needs atheris; TIME=seconds).
	@mkdir -p build/fuzz/corpus-formats build/fuzz/finds
	$(PYTHON) fuzz/formats.py -max_total_time=$(TIME) -artifact_prefix=build/fuzz/finds/ build/fuzz/corpus-formats

gpu: ## Test the kernels on this machine's GPU and print their figures (WHEELS=folder of wheels to install first).
	tests/kernels/run_gpu.sh $(WHEELS)

gpu-wheels: ## Download the wheels that an offline GPU machine lacks (WHEELS=folder).
	tests/kernels/run_gpu.sh --download $(WHEELS)

bench: ## Measure the speed, as ratios to baselines in the same run.
	$(PYTHON) -m benchmarks

# what compiles to WebAssembly: zig, or clang with wasm-ld and wasi-libc
WASM_CC ?= $(or $(if $(shell $(ZIG) version 2> /dev/null),$(ZIG) cc -target wasm32-wasi),$(if $(and $(shell command -v wasm-ld),$(wildcard /usr/include/wasm32-wasi)),$(CLANG) --target=wasm32-wasi))
PLAYGROUND = build/docs-playground
# the definitions alone: no kernels, no threads, nothing but what softnum.h needs
PLAYGROUND_C = $(filter-out csrc/targets/% $(patsubst %,csrc/dispatch/%.c,gate device) $(patsubst %,csrc/elementwise/%.c,carried logarithmic probe scale tapered) csrc/draw/% csrc/products/tables/% csrc/products/tapered/% csrc/products/blocks/% csrc/products/grouped/%,$(CSRC)) $(wildcard docs/playground/c/*.c)
WASM_FLAGS = -Oz -g0 -fno-trapping-math -fdata-sections -ffunction-sections -Wno-unknown-warning-option -Wno-pass-failed -Wno-sign-conversion

build/wasm/%.o: %.c
	@mkdir -p $(@D)
	$(WASM_CC) $(CFLAGS) $(WASM_FLAGS) -MMD -MP -c -o $@ $<

build/wasm/playground.wasm: $(PLAYGROUND_C:%.c=build/wasm/%.o)
	$(WASM_CC) -mexec-model=reactor -s -Wl,--gc-sections -Wl,--export=pg_room -Wl,--export=pg_call -o $@ $^

playground: ## Build the playground's pages in build/docs-playground (needs ziglang, or clang with wasm-ld and wasi-libc; a minute).
	$(if $(WASM_CC),,$(error no compiler for WebAssembly was found: pip install ziglang, or apt-get install clang lld wasi-libc libclang-rt-14-dev-wasm32; or state one, WASM_CC=command))
	@$(MAKE) --no-print-directory build/wasm/playground.wasm
	$(PYTHON) docs/playground/build.py build/wasm/playground.wasm $(PLAYGROUND)
	@echo $(PLAYGROUND)/index.html

docs: ## Build the documentation in build/docs (needs the extra docs); warnings are errors.
	$(PYTHON) -m sphinx -n -W --keep-going -q -d build/doctrees docs build/docs
	@$(if $(WASM_CC),$(MAKE) --no-print-directory playground PLAYGROUND=build/docs/playground,echo without the playground: no compiler for WebAssembly was found)
	@echo build/docs/index.html

lint: ## Check the style of Python and C.
	ruff check .
	ruff format --check .
	clang-format --dry-run -Werror $(C_FILES)

format: ## Apply the style to Python and C.
	ruff check --fix .
	ruff format .
	clang-format -i $(C_FILES)
