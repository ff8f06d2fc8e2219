"""Programs of the Tile language drawn at random."""

import numpy as np


class Dual:
    """A number and its derivatives by X and Z, along the branches that are taken."""

    def __init__(self, value, by_x=0.0, by_z=0.0):
        self.value, self.d = value, (by_x, by_z)

    def __add__(self, other):
        return Dual(self.value + other.value, *(a + b for a, b in zip(self.d, other.d, strict=True)))

    def __sub__(self, other):
        return Dual(self.value - other.value, *(a - b for a, b in zip(self.d, other.d, strict=True)))

    def __mul__(self, other):
        pairs = zip(self.d, other.d, strict=True)
        return Dual(self.value * other.value, *(a * other.value + self.value * b for a, b in pairs))

    def __neg__(self):
        return Dual(-self.value, *(-a for a in self.d))


class Draw:
    """A program as text, and as a function of one element."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.count = 0

    def pick(self, *choices):
        return choices[int(self.rng.integers(len(choices)))]

    def constant(self):
        value = float(self.rng.integers(-8, 9)) / 4
        return f"{value:g}", lambda env: Dual(value)

    def leaf(self, names):
        if self.rng.random() < 0.25:
            return self.constant()
        name = self.pick(*names)
        return name, lambda env: env[name]

    def expression(self, names, depth):
        if depth == 0 or self.rng.random() < 0.2:
            return self.leaf(names)
        kind = self.pick("+", "-", "*", "+", "*", "neg", "abs", "min", "max", "?")
        text, f = self.expression(names, depth - 1)
        if kind == "neg":
            return f"-({text})", lambda env: -f(env)
        if kind == "abs":
            return f"abs({text})", lambda env: -v if (v := f(env)).value < 0 else v
        other, g = self.expression(names, depth - 1)
        if kind in ("min", "max"):
            sign = 1 if kind == "min" else -1

            def extreme(env):
                a, b = f(env), g(env)
                return a if sign * a.value <= sign * b.value else b

            return f"{kind}({text}, {other})", extreme
        if kind == "?":
            test, c = self.condition(names)
            return f"({test} ? {text} : {other})", lambda env: f(env) if c(env) else g(env)
        operator = {"+": Dual.__add__, "-": Dual.__sub__, "*": Dual.__mul__}[kind]
        return f"({text} {kind} {other})", lambda env: operator(f(env), g(env))

    def condition(self, names):
        name, sign, (text, g) = self.pick(*names), self.pick("<", "<=", ">", ">="), self.constant()
        compare = {"<": float.__lt__, "<=": float.__le__, ">": float.__gt__, ">=": float.__ge__}[sign]

        def one(env):
            return bool(compare(float(env[name].value), float(g(env).value)))

        if self.rng.random() < 0.3:
            more, c = self.condition(names)
            joint = self.pick("&&", "||")
            return f"({name} {sign} {text} {joint} {more})", (
                (lambda env: one(env) and c(env)) if joint == "&&" else (lambda env: one(env) or c(env))
            )
        return (f"!({name} {sign} {text})", lambda env: not one(env)) if self.rng.random() < 0.2 else (
            f"{name} {sign} {text}", one
        )  # fmt: skip

    def block(self, names, depth, length):
        """(text, function on the environment, names that have a value behind it)"""
        lines, runs, names = [], [], list(names)
        for _ in range(length):
            kind = self.pick("=", "=", "if", "switch") if depth else "="
            if kind == "=":
                name = self.pick(*(n for n in names if n not in "XZ"), f"T{self.count}")
                self.count += 1
                text, f = self.expression(names, 3)
                lines.append(f"{name} = {text};")
                runs.append(lambda env, name=name, f=f: env.__setitem__(name, f(env)))
                names += [] if name in names else [name]
                continue
            test, c = self.condition(names)
            subject = self.pick(*names)
            bodies = [self.block(names, depth - 1, int(self.rng.integers(1, 3))) for _ in range(2)]
            (yes, run_yes, names_yes), (no, run_no, names_no) = bodies
            if kind == "if" and self.rng.random() < 0.3:
                lines.append(f"if ({test}) {{ {yes} }}")
                runs.append(lambda env, c=c, r=run_yes: r(env) if c(env) else None)
                continue
            if kind == "if":
                lines.append(f"if ({test}) {{ {yes} }} else {{ {no} }}")
            else:
                low, size = sorted(self.rng.integers(-4, 5, 2) / 2)
                lines.append(f"switch ({subject}) {{ case {low} .. {size + 0.5}: {yes} default: {no} }}")
                c = lambda env, s=subject, a=low, b=size + 0.5: a <= env[s].value < b  # noqa: E731
            runs.append(lambda env, c=c, y=run_yes, n=run_no: y(env) if c(env) else n(env))
            names += [n for n in names_yes if n in names_no and n not in names]

        def run(env):
            for part in runs:
                part(env)

        return " ".join(lines), run, names
