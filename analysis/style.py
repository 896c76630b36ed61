"""One look for the figures of plot.py and of the papers' page: room for the data, colours that no
kind of colour blindness takes for each other (Okabe and Ito)."""

from cycler import cycler

INK, SOFT = "#222222", "#8a8a8a"
COLORS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000"]

STYLE = {
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": SOFT,
    "axes.labelcolor": INK,
    "axes.prop_cycle": cycler(color=COLORS),
    "text.color": INK,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
}
