"""Training in an arithmetic of your choice: the emulation phase, which gives iterations to accuracy.

A *design* file says which format and rounding every role of a number has and how the three matrix products of a layer
are computed (`softnum.train.designs`); the same network trains under any design::

    from softnum.train import Settings, load_design, run
    record = run(load_design("c-wang-fp8"), Settings(epochs=2), seed=1, out="runs")

What is computed in which precision, nothing silently:

- the three matrix products of a layer (forward, backward-data, backward-weight), the bias (the initial value of the
  forward unit's accumulator) and its gradient (ones @ errors in the backward-weight unit): in the design's units;
- every role of `softnum.train.designs`: rounded as the design says, at the place that page names; operands in a block
  format by each product, in blocks along its own K;
- ReLU, the largest of a window, and their gradients: exact;
- other functions, sums and products element by element (an LSTM's gates and states, the sum of two branches), averages
  of windows, and their gradients: operation by operation, correctly rounded to the role ``elementwise``, or as an
  operator of the user's own says;
- batch, group, layer and RMS normalisation: sums as trees, means and variances in the role ``statistics``, the rest in
  ``elementwise``; softmax within a network: its sums in ``statistics``, exponentials and quotients in ``elementwise``;
- rotary positions: sines and cosines correctly rounded in binary64, then ``elementwise``;
- the two products of an attention, and their gradients: in the design's units; of an embedding: ones @ errors;
- the masks of sparse roles: magnitudes compared exactly, shares counted exactly (`softnum.train.designs.sparsity`);
- the quotient of a sum by the number of its terms (mean, variance, average): binary64, then the role's rounding;
- the loss's softmax and cross-entropy (of `ncf` the binary one, of `detector` both and smooth L1), the division by the
  batch size, the multiplication by the loss scale: binary64, in a fixed order and with an exponential made of
  additions and multiplications, so that the bits are the same on every machine;
- losses of a GAN and of an actor-critic, the probabilities that its actions are drawn by, and its returns: binary64, in
  a fixed order;
- dividing the loss scale out of a weight gradient: one binary64 division, then the rounding to ``weight_gradients``;
- every operation of the optimiser: exact, then one rounding to ``update.*``; its constants, the learning rate's
  schedule, norms for clipping and for rates by layer: binary64 (`softnum.train.update.optimisers` has the formulas);
- evaluation: the forward pass of the design itself; the largest output wins, the first among equals; ranks of items,
  scores, boxes and precisions of detections, and BLEU: binary64.
"""

from softnum.runtime.plain import PlainEnvironment

with PlainEnvironment():  # they compute constants
    from softnum.train.designs.design import Design
    from softnum.train.designs.gemms import design_gemms
    from softnum.train.designs.reader import design_names, load_design, uniform_design
    from softnum.train.engine.functions import activation, operate
    from softnum.train.engine.numerics import Numerics
    from softnum.train.engine.tensor import Parameter, Tensor
    from softnum.train.inspect.operations import explain
    from softnum.train.inspect.profiler import profile
    from softnum.train.inspect.workloads import workload
    from softnum.train.nets import make_network
    from softnum.train.runs.loop import run
    from softnum.train.runs.settings import Settings
    from softnum.train.studies.conduct import conduct_study
    from softnum.train.studies.plan import plan_study
    from softnum.train.studies.study import DEFAULT_STUDY, TARGET, Case, case_workloads, run_study
    from softnum.train.studies.study_file import read_study
    from softnum.train.studies.tuning import plan_tuning, tune_rates
    from softnum.train.update.optimisers import LAMB, LARS, SGD, Adam, AdamW, Lion, Muon, make_optimiser
    from softnum.train.update.schedules import Schedule

__all__ = [
    "DEFAULT_STUDY",
    "LAMB",
    "LARS",
    "SGD",
    "TARGET",
    "Adam",
    "AdamW",
    "Case",
    "Design",
    "Lion",
    "Muon",
    "Numerics",
    "Parameter",
    "Schedule",
    "Settings",
    "Tensor",
    "activation",
    "case_workloads",
    "conduct_study",
    "design_gemms",
    "design_names",
    "explain",
    "load_design",
    "make_network",
    "make_optimiser",
    "operate",
    "plan_study",
    "plan_tuning",
    "profile",
    "read_study",
    "run",
    "run_study",
    "tune_rates",
    "uniform_design",
    "workload",
]
