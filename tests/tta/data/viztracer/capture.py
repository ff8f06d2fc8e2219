"""Fits a line in plain Python under VizTracer: what trace.json was captured from."""

import random

from viztracer import VizTracer

draw = random.Random(1)
inputs = [draw.gauss(0, 1) for _ in range(2000)]
wanted = [3 * x - 1 for x in inputs]
slope = offset = 0.0
tracer = VizTracer(
    output_file="trace.json", verbose=0, include_files=["none"], ignore_c_function=True, minimize_memory=True
)
tracer.start()
for number in range(24):
    with tracer.log_event(f"iteration {number}"):
        with tracer.log_event("forward"):
            wrong = [slope * x + offset - y for x, y in zip(inputs, wanted, strict=True)]
        with tracer.log_event("backward"):
            d_slope = sum(e * x for e, x in zip(wrong, inputs, strict=True)) / len(inputs)
            d_offset = sum(wrong) / len(inputs)
        slope, offset = slope - 0.5 * d_slope, offset - 0.5 * d_offset
tracer.stop()
tracer.save()
