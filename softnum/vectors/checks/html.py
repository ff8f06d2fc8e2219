"""A report as one page to read in a browser, with nothing outside it."""

from __future__ import annotations

from html import escape

from softnum.vectors.checks.report import CheckReport

__all__ = ["page_of"]

_STYLE = """
:root { color-scheme: light dark; --ink: #1c1c1c; --paper: #fff; --line: #d0d0d0; --soft: #f4f4f2; --sign: #b3261e;
  --exponent: #1c5d99; --significand: #2f6b2f; --bad: #b3261e; --good: #2f6b2f; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e6e6; --paper: #161616; --line: #444; --soft: #222;
  --sign: #ff8a80; --exponent: #8ab4f8; --significand: #81c995; --bad: #ff8a80; --good: #81c995; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto;
  max-width: 72rem; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.15rem; margin-top: 2rem; } h3 { font-size: 1rem; }
code, td.code, pre { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: 13px; }
table { border-collapse: collapse; margin: .6rem 0; } .wide { overflow-x: auto; }
th, td { text-align: left; padding: .2rem .7rem; border-bottom: 1px solid var(--line); vertical-align: top; }
td.number, th.number { text-align: right; }
.verdict { font-weight: 600; padding: .6rem .8rem; background: var(--soft); border-left: 4px solid var(--bad); }
.verdict.good { border-color: var(--good); }
.cause { border: 1px solid var(--line); border-radius: 6px; padding: .2rem 1rem .8rem; margin: 1rem 0; }
.cause b { color: var(--bad); } .s { color: var(--sign); } .e { color: var(--exponent); }
.f { color: var(--significand); }
tr.got td { background: color-mix(in srgb, var(--bad) 12%, transparent); }
tr.diverges td { background: color-mix(in srgb, var(--bad) 20%, transparent); }
"""


def _bits(code: int, fmt) -> str:
    """The bits of a code, each group in its colour."""
    return " ".join(f'<span class="{name[0]}">{bits}</span>' for name, bits in fmt.fields(code))


def _row(cells, tag: str = "td", kinds=None, row_class: str = "") -> str:
    kinds = kinds or [""] * len(cells)
    made = "".join(
        f'<{tag} class="{kind}">{cell}</{tag}>' if kind else f"<{tag}>{cell}</{tag}>"
        for cell, kind in zip(cells, kinds, strict=True)
    )
    return f'<tr class="{row_class}">{made}</tr>' if row_class else f"<tr>{made}</tr>"


def _table(head, rows) -> str:
    return f'<div class="wide"><table><thead>{head}</thead><tbody>{"".join(rows)}</tbody></table></div>'


def _example(report: CheckReport, failure) -> str:
    """One vector: a row for each operand and result, then what the rounding saw."""
    spec, facts = report.spec, failure.to_dict(report.spec)
    columns = {c.name: c for c in spec.columns}
    named = [(c.name, v, c.format) for c, v in zip(spec.operand_columns, failure.operands, strict=True)]
    if failure.before is not None:
        named.append(("accumulator", failure.before, columns["result"].format))
    named += [(what, getattr(failure, what), columns["result"].format) for what in ("got", "want")]
    rows = []
    for name, code, fmt in named:
        shown = facts["operands"].get(name) or facts.get(name)
        if isinstance(code, tuple):
            bits = "<br>".join(_bits(c, fmt) for c in code[:16]) + ("<br>..." if len(code) > 16 else "")
            value = "<br>".join(map(escape, shown["values"][:16]))
        elif code is None or fmt is None:
            bits, value = "", "unknown" if code is None else ""
        else:
            bits, value = _bits(code, fmt), escape(shown["value"])
        cells = [name, shown["hex"], bits, value]
        if spec.has_flags:
            cells.append(escape(facts[f"{name}_flags"]["names"]) if f"{name}_flags" in facts else "")
        kinds = ["", "code", "code", "code", ""][: len(cells)]
        rows.append(_row(cells, kinds=kinds, row_class="got" if name == "got" else ""))
    head = ["", "hex", "bits", "value", *(["flags"] if spec.has_flags else [])]
    if "random_bits" in facts:
        rows.append(_row(["random bits", facts["random_bits"], *[""] * (len(head) - 2)]))
    text = _table(_row(head, "th"), rows)
    if "exact" in facts:
        text += f"<p>Exact: <code>{escape(facts['exact'])}</code>"
        if "rounding" in facts:
            r = facts["rounding"]
            text += (
                f" = <code>{escape(r['kept'])}</code> and <code>{escape(r['lost'])}</code> of the last place "
                f"(<code>{escape(r['quantum'])}</code>). Guard {r['guard']}, round {r['round']}, sticky {r['sticky']}: "
                f"{escape(r['decision'])}."
            )
        text += "</p>"
    return f"<h3>Smallest example, in line {failure.line}</h3>{text}"


def _trace(lines: list[str]) -> str:
    marked = [f'<b class="s">{escape(line)}</b>' if line.startswith(">") else escape(line) for line in lines]
    return f'<div class="wide"><pre>{"<br>".join(marked)}</pre></div>'


def _cause(report: CheckReport, found) -> str:
    name = f"<b>{escape(found.cause)}</b>" + (f" ({escape(found.detail)})" if found.detail else "")
    text = f"<p>{name}: {escape(found.sentence)}.</p>"
    text += f"<p>{found.explains} of {found.of} failures.</p>"
    if found.also:
        text += f"<p>The same results on these vectors: {escape('; '.join(found.also))}.</p>"
    if found.example is not None:
        text += _example(report, found.example)
    if found.trace is not None:
        text += _trace(found.trace[0])
    return f'<div class="cause">{text}</div>'


def page_of(report: CheckReport) -> str:
    """The report as an HTML document.

    Parameters
    ----------
    report : CheckReport

    Returns
    -------
    str

    Examples
    --------
    >>> import io
    >>> from softnum.vectors import check
    >>> from softnum.vectors.checks.html import page_of
    >>> page = page_of(check(io.BytesIO(b"3D 3D 3F 01\\n"), "multiply", "e5m2"))
    >>> page.startswith("<!DOCTYPE html>"), "http" in page
    (True, False)
    """
    spec = report.spec
    parts = [f"<h1>{escape(report.what)}</h1>"]
    good = " good" if report.ok else ""
    parts.append(f'<p class="verdict{good}">{escape(report.verdict)}</p>')
    parts += [f"<p>{escape(hint)}</p>" for hint in ([report.error] if report.error else []) + report.hints]
    if report.causes:
        parts.append("<h2>Causes</h2>")
        parts += [_cause(report, found) for found in report.causes]
    if report.contradicted:
        parts.append(f"<p>{report.contradicted} of the vectors that are right would be wrong by these causes.</p>")
    if report.closest:
        parts.append(f"<p>Closest: {escape(report.closest)}</p>")
    for words in (report.judged_on, report.passed_over):
        if words:
            parts.append(f"<p>{escape(words)}.</p>")
    if report.classes:
        head = _row(["vectors", "difference", "right result", "operands, mostly", "cause"], "th", ["number"] + [""] * 4)
        rows = [
            _row([str(c.count), *map(escape, (c.kind, c.result, c.operands, c.cause))], kinds=["number"] + [""] * 4)
            for c in report.classes
        ]
        parts += ["<h2>What differs</h2>", _table(head, rows)]
    if report.first:
        parts.append("<h2>Failures, the simplest first</h2><pre>")
        parts += [escape(failure.text(spec)) for failure in report.first]
        parts.append("</pre>")
    rules = {"any NaN equals another": report.any_nan, "flags ignored": report.ignore_flags, "ulp": report.ulp}
    rows = [_row([escape(str(k)), escape(str(v))]) for k, v in {**spec.facts(), **rules}.items()]
    parts += ["<h2>Judged by</h2>", _table("", rows)]
    title = escape(f"{report.source}: {report.what}")
    body = "\n".join(parts)
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head>{head}<title>{title}</title><style>{_STYLE}</style></head>\n'
        f"<body>\n{body}\n</body></html>\n"
    )
