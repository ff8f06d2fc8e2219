"""Training steps that many devices share: in which ways, what each computes, sends and holds, and how long it takes."""

from softnum.tta.parallelism.blocks import Block
from softnum.tta.parallelism.communication import Communication
from softnum.tta.parallelism.failures import Checkpoints, checkpoints
from softnum.tta.parallelism.plan import Stage, StepPlan, plan_step
from softnum.tta.parallelism.schedules import Slot, makespan, schedule
from softnum.tta.parallelism.step import StepTime, operation_seconds, step_time
from softnum.tta.parallelism.step_memory import StepMemory, check_memory, step_memory
from softnum.tta.parallelism.system import EFFICIENCY, System, Tier, read_system, system, systems
from softnum.tta.parallelism.ways import GROUPS, RECOMPUTE, SCHEDULES, Parallelism

__all__ = [
    "EFFICIENCY",
    "GROUPS",
    "RECOMPUTE",
    "SCHEDULES",
    "Block",
    "Checkpoints",
    "Communication",
    "Parallelism",
    "Slot",
    "Stage",
    "StepMemory",
    "StepPlan",
    "StepTime",
    "System",
    "Tier",
    "check_memory",
    "checkpoints",
    "makespan",
    "operation_seconds",
    "plan_step",
    "read_system",
    "schedule",
    "step_memory",
    "step_time",
    "system",
    "systems",
]
