# openhwgroup/cvfpu: fpnew_fma in binary32, in each rounding mode. FPU is its folder (with src/), COMMON that of
# pulp-platform/common_cells, which cvfpu has as a submodule.
COMMON ?= $(patsubst %/src/lzc.sv,%,$(firstword $(wildcard $(FPU)/src/common_cells/src/lzc.sv \
	$(FPU)/../common_cells/src/lzc.sv)))
ifeq ($(wildcard $(FPU)/src/fpnew_fma.sv),)
$(error FPU=$(FPU): no src/fpnew_fma.sv there; state the folder of cvfpu's sources, FPU=/path/to/cvfpu)
endif
ifeq ($(COMMON),)
$(error no common_cells in $(FPU)/src or beside $(FPU): git submodule update --init there, or COMMON=/path/to/common_cells)
endif

# Icarus Verilog 11 does not read its packages and types
SIMULATORS := verilator
REGISTERS ?= 0#     stages of the pipeline
# registers are arrays that cvfpu assigns in both ways
VERILATOR_FLAGS += -Wno-BLKANDNBLK

MODES := rne rtz rdn rup rna
# the numbers that RISC-V gives them
mode.rne = 0
mode.rtz = 1
mode.rdn = 2
mode.rup = 3
mode.rna = 4
# BUG=1: the unit rounds by the mode after the one that is asked for
mode_of = $(word $(shell expr 1 + \( $(mode.$(1)) + $(BUG) \) % 5),0 1 2 3 4)

CASES ?= $(MODES:%=fma-%) fmsub-rne fnmsub-rne fnmadd-rne
SOURCES := $(COMMON)/src/cf_math_pkg.sv $(COMMON)/src/lzc.sv $(addprefix $(FPU)/src/,fpnew_pkg.sv \
	fpnew_classifier.sv fpnew_rounding.sv fpnew_fma.sv)
# op_i: 0 FMADD, 1 FNMSUB; op_mod_i changes the addend's sign
op.fma = op_i=0,op_mod_i=0
op.fmsub = op_i=0,op_mod_i=1
op.fnmsub = op_i=1,op_mod_i=0
op.fnmadd = op_i=1,op_mod_i=1

define case
sources.$(1)-$(2) = $(SOURCES)
question.$(1)-$(2) = --op $(1) --format binary32 --rounding $(2) --nan riscv
bench.$(1)-$(2) = --handshake valid-ready --top fpnew_fma --include $(COMMON)/include \
	--parameter NumPipeRegs=$(REGISTERS) --port result=result_o,flags=status_o \
	--port 'a=operands_i[31:0],b=operands_i[63:32],c=operands_i[95:64]' \
	--tie $(op.$(1)),rnd_mode_i=$(call mode_of,$(2)),is_boxed_i=7,reg_ena_i=0 \
	--tie tag_i=0,mask_i=0,aux_i=0,flush_i=0
endef
$(foreach op,fma fmsub fnmsub fnmadd,$(foreach mode,$(MODES),$(eval $(call case,$(op),$(mode)))))
