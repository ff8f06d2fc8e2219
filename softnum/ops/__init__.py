"""All operations on codes and on Arrays: arithmetic, elementary functions, integers, distances in ulps.

The usual ones are names of `softnum` too.

>>> import softnum as sn
>>> sn.ops.atan2(sn.array(1.0, "binary16"), sn.array(-1.0, "binary16"))
Array(2.35546875, binary16)
>>> sn.ops.add is sn.add
True
"""

from typing import TYPE_CHECKING

from softnum.ops import arithmetic as _arithmetic
from softnum.ops import choices as _choices
from softnum.ops import elementary as _elementary
from softnum.ops.arithmetic import *  # noqa: F403  what its __all__ lists
from softnum.ops.arithmetic import CLASSES, CODE_OPERATIONS, OPERATIONS
from softnum.ops.choices import *  # noqa: F403
from softnum.ops.elementary import *  # noqa: F403
from softnum.ops.integers import from_integer, shift, to_integer
from softnum.ops.jamming import jam
from softnum.ops.ulps import ulp, ulp_error
from softnum.runtime.later import names_on_demand

if TYPE_CHECKING:
    from softnum.ops.scaled import block_by_maximum, block_reduction, scaled_operation
else:
    __getattr__, __dir__ = names_on_demand(
        __name__,
        {
            "softnum.ops.scaled": ("block_by_maximum", "block_reduction", "scaled_operation"),
        },
    )

__all__ = [
    "CLASSES",
    "CODE_OPERATIONS",
    "OPERATIONS",
    "block_by_maximum",
    "block_reduction",
    "from_integer",
    "jam",
    "scaled_operation",
    "shift",
    "to_integer",
    "ulp",
    "ulp_error",
]
__all__ += _arithmetic.__all__
__all__ += _choices.__all__
__all__ += _elementary.__all__
__all__.sort()
