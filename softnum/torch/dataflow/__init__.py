"""What a training iteration of a PyTorch model reads, writes and keeps, without its numbers.

The model's forward pass, loss and backward pass really run, on tensors that have shapes and no numbers, and every
operation that reaches PyTorch's dispatcher is noted. What becomes of them follows the rules of
`softnum.train.inspect.dataflow`: moving is free; rounding happens where a value is made, which is written once in each
format in which an operation reads it; element-by-element steps of one layer that follow each other are one operation.
"""
