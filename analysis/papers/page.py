"""A page of headings, paragraphs, tables and figures, written as Markdown and as HTML."""

import html
import re

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator  # noqa: E402

from papers.verdict import verdict  # noqa: E402
from style import STYLE  # noqa: E402

HEAD = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width,initial-scale=1">
<style>
:root {{ color-scheme: light dark; --page: #fff; --text: #222; --line: #ddd; --soft: #666 }}
@media (prefers-color-scheme: dark) {{
  :root {{ --page: #14181d; --text: #e6e9ed; --line: #3a424c; --soft: #a0a8b2 }} }}
body {{ font: 15px/1.5 sans-serif; max-width: 76em; margin: 2em auto; padding: 0 1em;
  color: var(--text); background: var(--page) }}
p, li, blockquote {{ max-width: 60em }}
.table {{ overflow-x: auto }}
table {{ border-collapse: collapse; margin: 1em 0; font-size: 13px }}
th, td {{ padding: .2em .7em; text-align: right; border-bottom: 1px solid var(--line) }}
th:first-child, td:first-child {{ text-align: left; position: sticky; left: 0; background: var(--page);
  min-width: 5.5em; max-width: 40vw }}
tr.groups th {{ text-align: center; color: var(--soft) }}
.short {{ white-space: nowrap }}
.long {{ min-width: 16em }}
code {{ overflow-wrap: anywhere }}
img {{ max-width: 100%; background: #fff }}
.verdict {{ border-left: 3px solid var(--soft); padding-left: .8em }}
nav li {{ margin: 0 }}
</style>
"""


class Page:
    def __init__(self, title, folder):
        self.title, self.folder = title, folder
        self.markdown, self.html = [], []
        self.begin = {}  # of the contents, in each
        self.headings = []  # below the title: level, words
        self.heading(title, 1)

    def heading(self, words, level=2):
        self.drop_empty(level)
        self.markdown.append("#" * level + " " + words)
        self.html.append(f'<h{level} id="{anchor(words)}">{inline(words)}</h{level}>')
        if level > 1:
            self.headings.append((level, words))

    def leave_out(self):
        """The section that has just begun: nothing of it was run."""
        for words in (self.headings, self.markdown, self.html):
            words.pop()

    def drop_empty(self, level=1):
        """A heading that is to be followed by another of its level, or a higher one, and has nothing below it."""
        if self.headings and self.headings[-1][0] >= level:
            number, words = self.headings[-1]
            if self.markdown[-1] == "#" * number + " " + words:
                self.leave_out()

    def contents(self):
        """Here stand links to all headings that follow."""
        self.begin = {"markdown": len(self.markdown), "html": len(self.html)}
        self.headings = []

    def say(self, words):
        words = " ".join(words.split())
        self.markdown.append(words)
        self.html.append(f"<p>{inline(words)}</p>")

    def items(self, lines):
        """A list."""
        self.markdown.append("\n".join(f"- {words}" for words in lines))
        items = "".join(f"<li>{inline(words)}</li>\n" for words in lines)
        self.html.append(f"<ul>\n{items}</ul>")

    def verdict(self, *claims):
        """What a table or figure says of the paper's claims, in one line; see papers/verdict.py."""
        words = " ".join(verdict(*claims).split())
        if words:
            self.markdown.append(f"**Verdict.** {words}")
            self.html.append(f'<p class="verdict"><b>Verdict.</b> {inline(words)}</p>')

    def table(self, header, rows):
        """A column is named "group: name" where some belong together."""
        rows = [[show(cell) for cell in row] for row in rows]
        lines = [header, ["---"] + ["---:"] * (len(header) - 1), *rows]
        self.markdown.append("\n".join("| " + " | ".join(line) + " |" for line in lines))
        groups = grouped(header)
        cells = ["".join(f"<th>{inline(name)}</th>" for _, names in groups for name in names)]
        cells += ["".join(f'<td class="{width(cell)}">{inline(cell)}</td>' for cell in row) for row in rows]
        top = "".join(f'<th colspan="{len(names)}">{inline(group)}</th>' for group, names in groups)
        above = f'<tr class="groups">{top}</tr>\n' if any(group for group, _ in groups) else ""
        body = "".join(f"<tr>{line}</tr>\n" for line in cells)
        self.html.append(f'<div class="table"><table>{above}{body}</table></div>')

    def figure(self, name, figure, caption):
        figure.savefig(self.folder / f"{name}.png", dpi=130)
        plt.close(figure)
        caption = " ".join(caption.split())
        self.markdown.append(f"![{caption}]({name}.png)\n\n{caption}")
        self.html.append(f'<p><img src="{name}.png" alt="{html.escape(caption)}"><br>{inline(caption)}</p>')

    def write(self, name):
        self.drop_empty()
        markdown, page = list(self.markdown), list(self.html)
        if self.begin:
            lines = [("  " * (level - 2), words, anchor(words)) for level, words in self.headings]
            markdown.insert(
                self.begin["markdown"], "\n".join(f"{indent}- [{words}](#{to})" for indent, words, to in lines)
            )
            items = "".join(
                f'<li style="margin-left:{len(indent)}em"><a href="#{to}">{inline(words)}</a></li>\n'
                for indent, words, to in lines
            )
            page.insert(self.begin["html"], f"<nav><ul>\n{items}</ul></nav>")
        (self.folder / f"{name}.md").write_text("\n\n".join(markdown) + "\n")
        head = HEAD.format(title=html.escape(self.title))
        (self.folder / f"{name}.html").write_text(head + "\n".join(page) + "</html>\n")


def anchor(words):
    """As GitHub makes them of headings."""
    return re.sub(r"[^\w -]", "", words.lower()).replace(" ", "-")


def grouped(header):
    """[(group, names)] of columns next to each other that are called "group: name"."""
    groups = []
    for cell in header:
        group, name = cell.split(": ", 1) if ": " in cell else ("", cell)
        if groups and groups[-1][0] == group:
            groups[-1][1].append(name)
        else:
            groups.append((group, [name]))
    return groups


def width(cell):
    """Of a cell that is not broken between words, or one that has room for some."""
    return "short" if len(cell) <= 24 else "long"


def inline(words):
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", html.escape(words, quote=False))


def show(value):
    """Numbers to three digits, None as a dash."""
    if value is None:
        return "-"
    if isinstance(value, (float, np.floating)):
        return f"{value:.3g}" if abs(value) < 100 or not np.isfinite(value) else f"{value:.0f}"
    return str(value)


def panels(rows, columns, width=3.2, height=2.4, **options):
    plt.rcParams.update(STYLE)
    return plt.subplots(rows, columns, figsize=(width * columns, height * rows), squeeze=False, **options)


def logarithmic(ax):
    """The y axis, with plain numbers at its ticks: fewer of them, the more it spans."""
    ax.set(yscale="log")
    low, high = ax.get_ylim()
    shown = (1, 2, 3, 5) if high < 100 * low else (1,)
    if high < 3 * low:
        ax.yaxis.set_major_locator(MaxNLocator(6))
        ax.yaxis.set_minor_locator(NullLocator())
        ax.yaxis.set_major_formatter("{x:g}")
        return
    label = FuncFormatter(lambda y, _: f"{y:g}" if float(f"{y:.1e}".split("e")[0]) in shown else "")
    ax.yaxis.set_major_formatter(label)
    ax.yaxis.set_minor_formatter(label)
