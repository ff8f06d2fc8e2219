"""8-bit posits as a table of values: how a design brings a format that softnum does not know.

Values follow the Posit Standard (2022), section 3: two exponent bits (es = 2), code 0 is zero and code 0x80 is NaR,
here NaN. Rounding is that of a table, to the nearest value, ties to the even code: small numbers become zero, and where
posits are sparse a number may round to the other neighbour than the standard has it, which rounds on the code. So this
is a table with the values of posits, kept as it is for the records made with it. The posit of the standard is softnum's
own format: ``format = "posit8"``.
"""

import softnum as sn


def posit_value(code: int, bits: int = 8, es: int = 2) -> float:
    """The value of a posit's code, from its sign, regime (a run of equal bits), exponent and fraction."""
    if code == 0:
        return 0.0
    if code == 1 << (bits - 1):
        return float("nan")
    if code >> (bits - 1):  # negative posits are the two's complement of positive ones
        return -posit_value((1 << bits) - code, bits, es)
    text = f"{code:0{bits}b}"[1:]
    run = len(text) - len(text.lstrip(text[0]))
    regime = run - 1 if text[0] == "1" else -run
    rest = text[run + 1 :]  # after the bit that ends the run
    exponent = int(rest[:es].ljust(es, "0"), 2)  # bits that were pushed out of the word count as zeros
    fraction = rest[es:]
    significand = 1 + int(fraction or "0", 2) / 2 ** len(fraction)
    return significand * 2.0 ** (regime * 2**es + exponent)


posit8 = sn.CustomFormat.from_table([posit_value(code) for code in range(256)], name="posit8")
