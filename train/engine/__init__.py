"""What a design's arithmetic runs on: tensors and their gradients, backends of arrays, numerics layer by layer."""
