"""Traces of units step by step, and probes of operations."""

from typing import TYPE_CHECKING

from softnum.runtime.later import names_on_demand

if TYPE_CHECKING:
    from softnum.inspect.bounds.product import ErrorBound
    from softnum.inspect.disclosure.document import Disclosure
    from softnum.inspect.identify.report import Identified
    from softnum.inspect.permitted.judge import Permitted, PermittedProduct
    from softnum.inspect.probes import Probe
    from softnum.inspect.which import Which
else:
    __getattr__, __dir__ = names_on_demand(
        __name__,
        {
            "softnum.inspect.bounds.product": ("ErrorBound",),
            "softnum.inspect.disclosure.document": ("Disclosure",),
            "softnum.inspect.identify.report": ("Identified",),
            "softnum.inspect.permitted.judge": ("Permitted", "PermittedProduct"),
            "softnum.inspect.probes": ("Probe",),
            "softnum.inspect.which": ("Which",),
        },
    )

__all__ = [
    "Disclosure",
    "ErrorBound",
    "Identified",
    "Permitted",
    "PermittedProduct",
    "Probe",
    "Which",
]
