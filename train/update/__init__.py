"""From gradients to parameters: scaling, clipping, optimisers and schedules."""
