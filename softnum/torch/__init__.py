"""PyTorch models in any arithmetic."""

from softnum.runtime.plain import PlainEnvironment

with PlainEnvironment():  # they compute constants
    from softnum.torch.functional import conv1d, conv2d, embedding, linear, matmul, scaled_dot_product_attention
    from softnum.torch.gpt import GPT
    from softnum.torch.models import convert, host_copies, next_step, set_rank
    from softnum.torch.modes import arithmetic, checkpoint_contexts
    from softnum.torch.numerics import Arithmetic
    from softnum.torch.optimizer import GradScaler, Optimizer
    from softnum.torch.positions import rotary
    from softnum.torch.products import gemms, workload
    from softnum.torch.quantization import quantize
    from softnum.torch.records import Recorder
    from softnum.torch.training import Training
    from softnum.torch.watch import statistics
    from softnum.torch.workers import CollectiveHook, backward_by_workers, use_collective

__all__ = [
    "GPT",
    "Arithmetic",
    "CollectiveHook",
    "GradScaler",
    "Optimizer",
    "Recorder",
    "Training",
    "arithmetic",
    "backward_by_workers",
    "checkpoint_contexts",
    "conv1d",
    "conv2d",
    "convert",
    "embedding",
    "gemms",
    "host_copies",
    "linear",
    "matmul",
    "next_step",
    "quantize",
    "rotary",
    "scaled_dot_product_attention",
    "set_rank",
    "statistics",
    "use_collective",
    "workload",
]
