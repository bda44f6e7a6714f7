"""Formulas as MathML, which browsers draw themselves: no script, no picture, no network.

docutils turns LaTeX into MathML; `refine` mends what browsers then draw badly.
"""

from __future__ import annotations

from typing import Any
from xml.etree.ElementTree import Element, SubElement, fromstring, register_namespace, tostring

from docutils import nodes
from docutils.utils.math import MathError, latex2mathml
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

_log = logging.getLogger(__name__)

_SPACE = "http://www.w3.org/1998/Math/MathML"
_ACCENTS = set("ˆ¯˜~^‾")  # noqa: RUF001
_FENCES = set("‖⟨⟩")
_NAMES = {"log", "exp"}
_COMMAS = tuple(",.;:)")

register_namespace("", _SPACE)


def _is(node: Element, tag: str) -> bool:
    return node.tag == f"{{{_SPACE}}}{tag}"


def _thin() -> Element:
    return Element(f"{{{_SPACE}}}mspace", width="0.17em")


def refine(parent: Element) -> None:
    """Keep norms and brackets small, put indices of accented letters beside them, and space around functions."""
    for node in parent:
        refine(node)
    if _is(parent, "munderover") and (parent[2].text or "") in _ACCENTS:
        letter, index, accent = parent
        parent.tag = f"{{{_SPACE}}}msub"
        parent[:] = []
        accented = SubElement(parent, f"{{{_SPACE}}}mover", accent="true")
        accented.extend((letter, accent))
        parent.append(index)
    if _is(parent, "mo") and (parent.text or "") in _FENCES:
        parent.set("stretchy", "false")
    if _is(parent, "math") or _is(parent, "mrow") or _is(parent, "mtd"):
        _space(parent)


def _space(row: Element) -> None:
    """Put a thin space on either side of a function name that stands beside an operand."""
    children = list(row)
    for place, node in reversed(list(enumerate(children))):
        if not (_is(node, "mi") and node.text in _NAMES):
            continue
        after = place + 2  # the sign for "applied to" comes between
        if after < len(children) and not _is(children[after], "mo"):
            row.insert(after, _thin())
        if place and not _is(children[place - 1], "mo"):
            row.insert(place, _thin())


def _mathml(node: nodes.math | nodes.math_block) -> str:
    try:
        drawn = latex2mathml.tex2mathml(node.astext(), as_block=isinstance(node, nodes.math_block))
    except MathError as error:
        _log.warning("formula %r: %s", node.astext(), error, location=node)
        return ""
    tree = fromstring(str(drawn).replace("&ApplyFunction;", "\u2061"))  # noqa: S314
    refine(tree)
    return tostring(tree, encoding="unicode")


def hold_commas(app: Any, doctree: nodes.document, docname: str) -> None:  # noqa: ARG001
    """Give every formula the comma that follows it, so that no line begins with one."""
    for node in doctree.findall(nodes.math):
        place = node.parent.index(node) + 1
        after = node.parent[place] if place < len(node.parent) else None
        if isinstance(after, nodes.Text) and after[:1] in _COMMAS:
            node["tail"] = str(after[:1])
            node.parent.replace(after, nodes.Text(after[1:]))


def inline(writer: Any, node: nodes.math) -> None:
    """Write a formula within a line."""
    tail = node.get("tail", "")
    writer.body.append(f'<span class="formula">{_mathml(node)}{tail}</span>')
    raise nodes.SkipNode


def display(writer: Any, node: nodes.math_block) -> None:
    """Write a formula on lines of its own, with its number if it has one."""
    writer.body.append(writer.starttag(node, "div", CLASS="math"))
    if node["number"]:
        writer.body.append(f'<span class="eqno">({get_node_equation_number(writer, node)})</span>')
    writer.body.append(_mathml(node))
    writer.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Register the way to write formulas."""
    app.connect("doctree-resolved", hold_commas)
    app.add_html_math_renderer("mathml", inline_renderers=(inline, None), block_renderers=(display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
