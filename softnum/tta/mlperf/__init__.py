"""MLPerf training logs, beyond their lines (`softnum.tta.mllog`): evaluations, progress, what benchmarks ask for."""
