# The designs of examples/rtl, or of another folder with copies of them: make verify RTL=folder.
RTL ?= ../rtl
SIMULATORS := icarus verilator
CASES ?= multiply half add mac

sources.multiply = $(RTL)/fp8_multiply.v
question.multiply = --op multiply --format e4m3fn
bench.multiply = --handshake combinational --parameter BUG=$(BUG)

# the same module with other parameters
sources.half = $(RTL)/fp8_multiply.v
question.half = --op multiply --format binary16
bench.half = --handshake combinational --parameter EXP=5 --parameter MAN=10 --parameter IEEE=1 --parameter BUG=$(BUG)

# a pipeline of two stages
sources.add = $(RTL)/fp8_add.v
question.add = --op add --format e4m3fn
bench.add = --handshake latency:2 --parameter STAGES=2 --parameter BUG=$(BUG)

# sums of products, a step a clock, with a clock enable that pauses
sources.mac = $(RTL)/fp8_mac.v
question.mac = --op mac --unit "MadUnit('e6m9', operand='e5m2', chunk=8)" --length 32
bench.mac = --handshake latency:1 --parameter BUG=$(BUG)
