"""Fits a line of many slopes in plain Python, logged by mlperf_logging: what run.log was captured from."""

import os
import random

from mlperf_logging import mllog
from mlperf_logging.mllog import constants as key

BATCH, SAMPLES, WIDTH, EPOCHS = 16, 4800, 32, 8

mllog.config(filename="run.log", root_dir=os.path.dirname(os.path.abspath(__file__)))
log = mllog.get_mllogger()
draw = random.Random(1)
truth = [draw.uniform(-1, 1) for _ in range(WIDTH)]
inputs = [[draw.gauss(0, 1) for _ in range(WIDTH)] for _ in range(SAMPLES)]
wanted = [sum(a * b for a, b in zip(row, truth, strict=True)) for row in inputs]
weights = [0.0] * WIDTH


def errors(rows, targets):
    return [sum(a * b for a, b in zip(row, weights, strict=True)) - y for row, y in zip(rows, targets, strict=True)]


log.event(key.SUBMISSION_BENCHMARK, "least_squares")
log.event(key.GLOBAL_BATCH_SIZE, BATCH)
log.event(key.TRAIN_SAMPLES, SAMPLES)
log.event(key.SEED, 1)
log.start(key.INIT_START)
log.end(key.INIT_STOP)
log.start(key.RUN_START)
for epoch in range(1, EPOCHS + 1):
    log.start(key.BLOCK_START, metadata={"first_epoch_num": epoch, "epoch_count": 1})
    log.start(key.EPOCH_START, metadata={"epoch_num": epoch})
    for at in range(0, SAMPLES, BATCH):
        rows = inputs[at : at + BATCH]
        wrong = errors(rows, wanted[at : at + BATCH])
        for j in range(WIDTH):
            weights[j] -= 0.005 * sum(row[j] * e for row, e in zip(rows, wrong, strict=True)) / BATCH
    log.end(key.EPOCH_STOP, metadata={"epoch_num": epoch})
    log.end(key.BLOCK_STOP, metadata={"first_epoch_num": epoch, "epoch_count": 1})
    log.start(key.EVAL_START, metadata={"epoch_num": epoch})
    loss = sum(e * e for e in errors(inputs, wanted)) / SAMPLES
    log.event(key.EVAL_ACCURACY, 1 - loss, metadata={"epoch_num": epoch})
    log.end(key.EVAL_STOP, metadata={"epoch_num": epoch})
log.end(key.RUN_STOP, metadata={"status": "success"})
