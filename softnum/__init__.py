from softnum.formats import *  # noqa
