"""Topic models of papers 000 (Table 4, Fig. 1), 002 (Fig. 3) and 004 (Table 1, Figs. 3, 5)."""

import numpy as np

from papers_page import panels
from papers_verdict import Claim, below, of_runs

PFA = {  # method: label, 20-News and seconds an iteration of Table 4
    "sghmc": ("SGHMC", 759, 0.047),
    "sghmc-em": ("SGHMC-EM", 738, 0.047),
    "sgnht": ("SGNHT", 757, 0.045),
    "sgnht-em": ("SGNHT-EM", 719, 0.045),
    "sg-nphmc": ("SG-NPHMC", 714, 0.049),
    "sg-nphmc-em": ("SG-NPHMC-EM", 712, 0.049),
}
ONLINE = {"sgld": ("SGLD", 0.778), "sghmc": ("SGHMC", 0.815), "sgrld": ("SGRLD", 0.730)}
ONLINE["sgrhmc"] = ("SGRHMC", 0.806)  # seconds per 100 documents
ICML = {
    "msgnht-s": ("mSGNHT-S", 939.67),
    "msgnht-e": ("mSGNHT-E", 960.56),
    "sghmc-s": ("SGHMC-S", 1004.73),
    "sghmc-e": ("SGHMC-E", 1017.51),
    "sgrld": ("SGRLD", 1154.68),
}
GIBBS = 907.84
STEPS = ("1e-2", "2.5e-3", "5e-4")


def write(page, results):
    page.heading("Topic models: 000, 002 and 004")
    page.say("""Perplexities are of document completion: a fifth of each test document's words is
        scored, the rest folded in from the topics alone by 100 steps of EM with alpha 0.1,
        probabilities averaged over the draws before their logarithm. The papers fold in by their
        own samplers, so that their numbers and ours are of one kind but not of one scale. These
        runs are those of `make papers-topics`.""")
    write_pfa(page, results)
    write_online(page, results)
    write_icml(page, results)
    write_deep(page, results)


def averaged(results, name):
    """Of each chain, after its last draw; none for chains that diverged."""
    return finite(results.draws(name, "perplexity", "averages").reshape(-1))


def finite(scores):
    return scores[np.isfinite(scores)]


def spread(scores):
    """Median, and how far the chains are apart."""
    return [float(np.median(scores)), float(np.ptp(scores))] if len(scores) else [None, None]


# ---- Poisson factor analysis ----


def write_pfa(page, results):
    page.heading("000, Table 4 and Fig. 1: Poisson factor analysis of 20 Newsgroups", 3)
    rows, curves = [], {}
    for method, (label, paper, seconds) in PFA.items():
        name = f"000/topics/{method}"
        if not results.has(name):
            continue
        ours = results.milliseconds(name) / 1e3
        rows.append([label, paper, *spread(averaged(results, name)), seconds, ours])
        curves[label] = results.draws(name, "perplexity")
    if not rows:
        return page.say("Not run.")
    chains = {m: of_runs(averaged(results, f"000/topics/{m}")) for m in PFA if results.has(f"000/topics/{m}")}
    pairs = {PFA[m][0]: (chains[m], chains[f"{m}-em"]) for m in chains if f"{m}-em" in chains}
    page.verdict(Claim("EM lowers the perplexity", {label: below(em, plain) for label, (plain, em) in pairs.items()}))
    header = ["method", "paper", "ours", "range of 3 chains", "paper, s an iteration", "ours"]
    page.table(header, rows)
    figure, axes = panels(1, 1, 5, 3)
    for label, curve in curves.items():
        axes[0, 0].plot(np.median(curve, axis=0), lw=1, label=label)
    axes[0, 0].set(xlabel="iteration after burn-in", ylabel="perplexity of a draw")
    axes[0, 0].legend()
    page.figure("000_fig1", figure, "Median over the chains of the perplexity of single draws.")
    page.say("""150 + 150 iterations, a tenth of the paper's, by date (11,314 posts to learn from,
        500 of the others to test). The topics' laws of words are moved by SGRLD in all rows, the
        documents by exact Gibbs (the paper's 20 steps of RHMC for them are not to be had: it does not say
        in which metric); the methods differ in what moves E, T and the hyperparameters,
        and whether the masses of the last two are learned. SGR-NPHMC wants a metric of all
        parameters and is left out; so is the Reuters corpus, which is not to be had.""")


# ---- online LDA ----


def write_online(page, results):
    page.heading("002, Fig. 3: online LDA of Wikipedia", 3)
    rows, curves = [], {}
    for method, (label, paper) in ONLINE.items():
        name = f"002/topics/{method}"
        if not results.has(name):
            continue
        curve = results.draws(name, "perplexity", "warmup_posterior")
        per_100 = results.milliseconds(name) / 1e3 * 2  # minibatches of 50
        rows.append([label, paper, per_100, *spread(curve[:, -1])])
        curves[label] = curve
    if not rows:
        return page.say("Not run.")
    last = {label: of_runs(finite(curve[:, -1])) for label, curve in curves.items()}
    pairs = [("SGRHMC", "SGRLD"), ("SGRLD", "SGLD"), ("SGRHMC", "SGHMC")]
    page.verdict(
        Claim(
            "Lower perplexity after 10,000 articles",
            {f"{a} than {b}": below(last[a], last[b]) for a, b in pairs if a in last and b in last},
        )
    )
    header = ["method", "paper, s per 100 documents", "ours", "perplexity after 10,000", "range"]
    page.table(header, rows)
    figure, axes = panels(1, 1, 5, 3)
    for label, curve in curves.items():
        documents = 50 * np.arange(1, curve.shape[1] + 1)
        axes[0, 0].plot(documents, np.median(curve, axis=0), lw=1, label=label)
    axes[0, 0].set(xlabel="documents", ylabel="perplexity of a draw")
    axes[0, 0].legend()
    page.figure("002_fig3", figure, "Median over three runs; the paper's curves end near 1000.")
    page.say("""10,000 articles of 20 words or more, drawn from one run of 261,409 page ids. Ours
        draws each minibatch from all of them. SGLD and SGHMC move the expanded natural form: they
        cannot keep the expanded mean above zero. Seconds are of a core of this machine, scores
        included.""")


# ---- abstracts ----


def write_icml(page, results):
    page.heading("004, Table 1 and Fig. 3: LDA of ICML abstracts", 3)
    rows, runs = [], {}
    for method, (label, paper) in ICML.items():
        names = [f"004/topics/{method}/{h}" for h in STEPS]
        if not any(results.has(name) for name in names):
            continue
        scores = [averaged(results, name) if results.has(name) else [] for name in names]
        medians = [spread(s)[0] for s in scores]
        best = min((m for m in medians if m is not None), default=None)
        if best is not None:
            runs[label] = of_runs(scores[medians.index(best)])
        rows.append([label, paper, best, *medians])
    if results.has("004/topics/gibbs"):
        score = spread(averaged(results, "004/topics/gibbs"))[0]
        rows.append(["Gibbs", GIBBS, score, None, None, None])
    if not rows:
        return page.say("Not run.")
    pairs = [("mSGNHT-S", "mSGNHT-E"), ("SGHMC-S", "SGHMC-E"), ("mSGNHT-S", "SGHMC-S"), ("mSGNHT-S", "SGRLD")]
    page.verdict(
        Claim(
            "Lower perplexity at the best step",
            {f"{a} than {b}": below(runs[a], runs[b]) for a, b in pairs if a in runs and b in runs},
        )
    )
    page.table(["method", "paper", "ours, best", *(f"h = {h}" for h in STEPS)], rows)
    page.say("""Medians of three chains; a dash: all of them diverged. 300 + 700 iterations of one
        step each, minibatches of 5, diffusion and friction 0.75; 766 abstracts, which is not the
        paper's matrix (765), split four to one at random.""")


# ---- deep Poisson factor analysis ----


def write_deep(page, results):
    page.heading("004, Fig. 5: deep Poisson factor analysis of Wikipedia", 3)
    curves = {}
    for h in ("1e-4", "1e-5"):
        for integrator, label in (("s", "mSGNHT-S"), ("e", "mSGNHT-E")):
            name = f"004/deep/msgnht-{integrator}/{h}"
            if results.has(name):
                curves[f"{label}, h = {h}"] = (
                    results.draws(name, "perplexity", "warmup_posterior")[0],
                    100 * 3,
                )
    if results.has("002/topics/sgrld"):
        curve = results.draws("002/topics/sgrld", "perplexity", "warmup_posterior")
        curves["LDA, SGRLD"] = (np.median(curve, axis=0), 50)
    if len(curves) < 2:
        return page.say("Not run.")
    figure, axes = panels(1, 1, 5, 3)
    rows = []
    for label, (curve, documents) in curves.items():
        axes[0, 0].plot(documents * np.arange(1, len(curve) + 1), curve, lw=1, label=label)
        rows.append([label, documents * len(curve), float(curve[-1])])
    axes[0, 0].set(xlabel="documents seen", ylabel="perplexity of a draw")
    axes[0, 0].legend()
    page.figure("004_fig5", figure, "Each of the three blocks has minibatches of its own.")
    page.table(["method", "documents seen", "perplexity"], rows)
    page.say("""10,000 articles seen three to six times, where the paper has ten million seen once:
        the beginning of its curves at best.""")
