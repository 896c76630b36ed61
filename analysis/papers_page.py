"""A page of headings, paragraphs, tables and figures, written as Markdown and as HTML."""

import html
import re

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402

STYLE = {
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
}

HEAD = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{title}</title>
<style>
body {{ font: 15px/1.5 sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em; color: #222 }}
table {{ border-collapse: collapse; margin: 1em 0; font-size: 13px }}
th, td {{ padding: .2em .7em; text-align: right; border-bottom: 1px solid #ddd }}
th:first-child, td:first-child {{ text-align: left }}
img {{ max-width: 100% }}
</style>
"""


class Page:
    def __init__(self, title, folder):
        self.title, self.folder = title, folder
        self.markdown, self.html = [], [HEAD.format(title=html.escape(title))]
        self.heading(title, 1)

    def heading(self, words, level=2):
        self.markdown.append("#" * level + " " + words)
        self.html.append(f"<h{level}>{inline(words)}</h{level}>")

    def say(self, words):
        words = " ".join(words.split())
        self.markdown.append(words)
        self.html.append(f"<p>{inline(words)}</p>")

    def table(self, header, rows):
        rows = [[show(cell) for cell in row] for row in rows]
        lines = [header, ["---"] + ["---:"] * (len(header) - 1), *rows]
        self.markdown.append("\n".join("| " + " | ".join(line) + " |" for line in lines))
        cells = ["".join(f"<th>{inline(cell)}</th>" for cell in header)]
        cells += ["".join(f"<td>{inline(cell)}</td>" for cell in row) for row in rows]
        self.html.append("<table>" + "".join(f"<tr>{line}</tr>\n" for line in cells) + "</table>")

    def figure(self, name, figure, caption):
        figure.savefig(self.folder / f"{name}.png", dpi=130)
        plt.close(figure)
        caption = " ".join(caption.split())
        self.markdown.append(f"![{caption}]({name}.png)\n\n{caption}")
        self.html.append(
            f'<p><img src="{name}.png" alt="{html.escape(caption)}"><br>{inline(caption)}</p>'
        )

    def write(self, name):
        (self.folder / f"{name}.md").write_text("\n\n".join(self.markdown) + "\n")
        (self.folder / f"{name}.html").write_text("\n".join(self.html) + "</html>\n")


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
    return plt.subplots(
        rows, columns, figsize=(width * columns, height * rows), squeeze=False, **options
    )
