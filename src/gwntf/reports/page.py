"""The HTML of a report: one file with styles and pictures inside, readable on a phone."""

import base64
import io
import re
from collections.abc import Sequence
from html import escape
from typing import Any

_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1c1c1c; background: #fff; margin: 0 auto; padding: 1rem;
  max-width: 60rem; }
h1, h2, h3, p, figcaption { overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2rem; border-bottom: 1px solid #ccd; }
h3 { font-size: 1.05rem; margin-bottom: .3rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .6rem; text-align: right; border-bottom: 1px solid #dde; white-space: nowrap; }
th { white-space: normal; vertical-align: bottom; max-width: 9rem; overflow-wrap: break-word; }
th:first-child, td:first-child { text-align: left; position: sticky; left: 0; background: #fff; max-width: 40vw;
  white-space: normal; overflow-wrap: break-word; }
@media (max-width: 40rem) { th, td { padding: .35rem .3rem; font-size: .9rem; } }
td.best { background: #e3f1e3; font-weight: 600; }
td small { color: #555; display: block; }
figure { margin: .8rem 0; } figcaption { color: #444; font-size: .9rem; }
img { max-width: 100%; height: auto; }
.pair { display: flex; flex-wrap: wrap; gap: 0 1rem; } .pair > figure { flex: 1 1 22rem; min-width: 0; }
code { font-size: .95em; background: #f5f5f8; padding: 0 .2em; }
pre { overflow-x: auto; background: #f5f5f8; padding: .6rem; font-size: .85rem; }
"""


_CODE = re.compile(r"`([^`<>]+)`")
_PIXELS_PER_INCH = 64  # minimum size of pictures, so that their text is legible; on a narrow screen they scroll


def page(title: str, sections: Sequence[str]) -> str:
    """Return an HTML document; `sections` are HTML, the title is text."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{escape(title)}</h1>\n" + "\n".join(sections) + "\n</body>\n</html>\n"
    )


def section(heading: str, *parts: str) -> str:
    """Return a section; the heading is text, the parts are HTML."""
    return f"<section>\n<h2>{escape(heading)}</h2>\n" + "\n".join(parts) + "\n</section>"


def subheading(text: str) -> str:
    """Return a heading inside a section."""
    return f"<h3>{escape(text)}</h3>"


def paragraph(text: str) -> str:
    """Return a paragraph of text; what is between backticks is code."""
    return "<p>" + _CODE.sub(r"<code>\1</code>", escape(text)) + "</p>"


def preformatted(text: str) -> str:
    """Return text with its line breaks and spaces."""
    return f"<pre>{escape(text)}</pre>"


def html_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table that scrolls horizontally; `head` is text, each cell a complete HTML ``td`` element."""
    header = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    body = "\n".join("<tr>" + "".join(cells) + "</tr>" for cells in rows)
    table = f"<table>\n<thead><tr>{header}</tr></thead>\n<tbody>\n{body}\n</tbody></table>"
    return f'<div class="scroll">{table}</div>'


def cell(text: str, note: str = "", *, best: bool = False) -> str:
    """Return a table cell with text and a smaller note below it."""
    kind = ' class="best"' if best else ""
    small = f"<small>{escape(note)}</small>" if note else ""
    return f"<td{kind}>{escape(text)}{small}</td>"


def new_figure(width: float, height: float) -> Any:
    """Return an empty matplotlib figure of that size in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def picture(figure: Any, caption: str) -> str:
    """Return an embedded matplotlib figure; the caption is also its description for screen readers."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    data = base64.b64encode(buffer.getvalue()).decode("ascii")
    text = escape(caption)
    least = round(_PIXELS_PER_INCH * figure.get_figwidth())
    image = f'<img style="min-width:{least}px" src="data:image/png;base64,{data}" alt="{text}">'
    return f'<figure><div class="scroll">{image}</div><figcaption>{text}</figcaption></figure>'


def pair(*figures: str) -> str:
    """Return figures side by side, or one below the other on a narrow screen."""
    return f'<div class="pair">{"".join(figures)}</div>'
