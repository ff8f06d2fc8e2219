"""The public names and what they stand for, as ``from softnum import *`` gives them: what a repr is evaluated with."""

import softnum as sn

__all__ = ["PUBLIC"]

PUBLIC = {name: getattr(sn, name) for name in sn.__all__}
