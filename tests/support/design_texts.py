"""Designs that tests of several engines and devices train: units of blocks, and blocks that meet single numbers."""

from __future__ import annotations

__all__ = ["TEXTS"]

HOPPER = """
name = "hopper"
[roles]
input = { format = "e4m3fn", overflow = "saturate" }
weights = { format = "e4m3fn", overflow = "saturate" }
activations = { format = "e4m3fn", overflow = "saturate" }
errors = { format = "e5m2", overflow = "saturate" }
[units]
forward = { preset = "nvidia_h100_e4m3" }
backward_data = { preset = "nvidia_h100_e4m3" }
backward_weight = { preset = "nvidia_h100_e4m3" }
"""
#: weights in blocks by single numbers; errors in blocks, of which some meet single numbers
MIXED = """
name = "mixed"
[roles]
input = "bfloat16"
weights = { format = "mxfp4", scale_rule = "rceil" }
activations = "bfloat16"
errors = { format = "mxfp8_e5m2", rounding = "stochastic" }
[units]
forward = "nvidia_h100_bf16"
"""
#: activations of which narrower copies are kept, blocks along their elements, rounded again along the samples
SAVED = """
name = "saved"
[roles]
input = "mxfp8_e4m3"
weights = "mxfp8_e4m3"
activations = "mxfp8_e4m3"
errors = { format = "mxfp8_e5m2", rounding = "stochastic" }
saved_activations = { format = { element = "e2m1fn", scale = "e4m3fn", block_size = 16 }, rounding = "stochastic" }
"""
#: blocks forwards, none where gradients of weights are made, one operand's where gradients of data are
PASSES = """
name = "passes"
[roles]
input = "mxfp8_e4m3"
weights = "mxfp8_e4m3"
activations = "mxfp8_e4m3"
errors = { format = "bfloat16", rounding = "stochastic" }
backward_weight = { activations = "bfloat16", input = "bfloat16" }
"""
#: name -> text of a design
TEXTS = {"hopper": HOPPER, "mixed": MIXED, "passes": PASSES, "saved": SAVED}
