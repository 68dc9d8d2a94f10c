"""Formulas as MathML, which browsers draw by themselves: no script, no fonts, no network."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml


def inline(translator: Any, node: nodes.math) -> None:
    """A formula in a line."""
    translator.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def displayed(translator: Any, node: nodes.math_block) -> None:
    """A formula by itself."""
    translator.body.append(translator.starttag(node, "div", CLASS="math"))
    translator.body.append(tex2mathml(node.astext(), as_block=True))
    translator.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Sphinx asks for this."""
    app.add_html_math_renderer("mathml", inline_renderers=(inline, None), block_renderers=(displayed, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
