"""Topic models of papers 000 (Table 4, Fig. 1), 002 (Fig. 3, Table S.1) and 004 (Table 1, Figs. 3, 5)."""

import numpy as np

from papers.page import logarithmic, panels
from papers.runs import say_builds
from papers.verdict import Claim, below, in_pairs, of_runs

NEWS, REUTERS = "20-News", "Reuters"
PFA = {  # method: label, perplexities, and seconds an iteration on 20-News, of Table 4
    "sghmc": ("SGHMC", {NEWS: 759, REUTERS: 996}, 0.047),
    "sghmc-em": ("SGHMC-EM", {NEWS: 738, REUTERS: 972}, 0.047),
    "sgnht": ("SGNHT", {NEWS: 757, REUTERS: 979}, 0.045),
    "sgnht-em": ("SGNHT-EM", {NEWS: 719, REUTERS: 968}, 0.045),
    "sg-nphmc": ("SG-NPHMC", {NEWS: 714, REUTERS: 958}, 0.049),
    "sg-nphmc-em": ("SG-NPHMC-EM", {NEWS: 712, REUTERS: 947}, 0.049),
    "sgr-nphmc": ("SGR-NPHMC", {NEWS: 723, REUTERS: 952}, 0.410),
}
ONLINE = {"sgld": ("SGLD", 0.778), "sghmc": ("SGHMC", 0.815), "sgrld": ("SGRLD", 0.730)}
ONLINE["sgrhmc"] = ("SGRHMC", 0.806)  # seconds per 100 documents
WORDS, TOPICS = 7, 11  # of Table S.1
ALIVE = 1e-4  # least share of the tokens that a topic has which is left
ICML = {
    "msgnht-s": ("mSGNHT-S", 939.67),
    "msgnht-e": ("mSGNHT-E", 960.56),
    "sghmc-s": ("SGHMC-S", 1004.73),
    "sghmc-e": ("SGHMC-E", 1017.51),
    "sgrld": ("SGRLD", 1154.68),
}
GIBBS = 907.84
STEPS = ("1e-2", "2.5e-3", "5e-4")
INTEGRATORS = {"s": "mSGNHT-S", "e": "mSGNHT-E"}


def write(page, results):
    page.heading("Topic models: 000, 002 and 004")
    made = [name for name in results.runs if is_ours(name) and results.has(name)]
    if not made:
        return page.leave_out()
    page.say("""Perplexities are of document completion: a fifth of each test document's words is
        scored, the rest folded in from the topics alone by 100 steps of EM with alpha 0.1,
        probabilities averaged over the draws before their logarithm. The papers fold in by their
        own samplers, so that their numbers and ours are of one kind but not of one scale. Chains are
        seeds: each is by itself, and two methods are compared seed by seed, as their minibatches are the
        same. Seconds are of processor time, reading and scoring included. These
        runs are those of `make papers-topics`, in the order of `jobs/papers/topics`.""")
    say_builds(page, results, made)
    write_pfa(page, results)
    write_online(page, results)
    write_icml(page, results)
    write_deep(page, results)


def is_ours(name):
    return any(part in name for part in ("/topics/", "/steps/", "/deep/"))


def averaged(results, name):
    """Of each chain, after its last draw; not finite where a chain diverged."""
    return results.draws(name, "perplexity", "averages").reshape(-1)


def history(results, name):
    """[chain][iteration], warmup first, of single draws."""
    groups = ("warmup_posterior", "posterior")
    return np.concatenate([results.draws(name, "perplexity", group) for group in groups], axis=1)


def span(scores):
    """The mean over chains that did not diverge, and their range."""
    scores = scores[np.isfinite(scores)]
    return f"{scores.mean():.0f} ({scores.min():.0f} to {scores.max():.0f})" if scores.size else None


def lower(words, scores, pairs):
    """{case: (the lower, the higher)} of names in `scores`, seed by seed, as far as both are there."""
    there = {case: pair for case, pair in pairs.items() if pair[0] in scores and pair[1] in scores}
    return Claim(words, {case: in_pairs(scores[a], scores[b]) for case, (a, b) in there.items()})


def band(ax, x, curves, **look):
    """The mean over chains that did not diverge, and their range, where they were scored anew, and at the end."""
    there = np.isfinite(curves).any(axis=0)
    new = np.append(True, np.nan_to_num(np.diff(curves, axis=1), nan=1.0).any(axis=0))
    new[-1] = True
    x, curves = x[there & new], curves[:, there & new]
    curves = curves[np.isfinite(curves).all(axis=1)]
    if len(curves):
        line = ax.plot(x, curves.mean(axis=0), lw=1, **look)[0]
        ax.fill_between(x, curves.min(axis=0), curves.max(axis=0), color=line.get_color(), alpha=0.12, lw=0)


def made_of(results, prefix, methods):
    names = {method: f"{prefix}/{method}" for method in methods}
    return {method: name for method, name in names.items() if results.has(name)}


def iteration_seconds(results, name):
    """Of one chain."""
    chains = results.draws(name, "perplexity").shape[0]
    return results.cpu_seconds(name) / chains / results.iterations(name)


# ---- Poisson factor analysis ----


def write_methods(page, results, names, corpus):
    """The column of Table 4, beside ours."""
    scores = {method: averaged(results, name) for method, name in names.items()}
    em = {PFA[m][0]: (f"{m}-em", m) for m in names}
    by_metric = {PFA[m][0]: (m, "sgr-nphmc") for m in ("sg-nphmc", "sg-nphmc-em")}
    page.verdict(
        lower("EM lowers the perplexity", scores, em),
        lower("Lower without a metric than SGR-NPHMC has", scores, by_metric),
    )
    rows = []
    for method, name in names.items():
        label, papers, seconds = PFA[method]
        plain = method.removesuffix("-em")
        gain = ", ".join(f"{x:+.1f}" for x in scores[method] - scores[plain]) if plain != method and plain in scores else None
        rows.append([label, papers[corpus], span(scores[method]), gain])
        rows[-1] += [seconds if corpus == NEWS else None, iteration_seconds(results, name)]
    page.table(["method", f"paper, {corpus}", "ours, three seeds", "less plain, by seed", "paper, s an iteration", "ours"], rows)


def write_pfa(page, results):
    page.heading("000, Table 4 and Fig. 1: Poisson factor analysis of 20 Newsgroups", 3)
    names = made_of(results, "000/topics", PFA)
    if not names:
        return page.say("Not run.")
    write_methods(page, results, names, NEWS)
    figure, axes = panels(1, 2, 4.2, 3, sharey=True)
    for method, name in names.items():
        curve = results.draws(name, "perplexity")
        iteration = np.arange(1, curve.shape[1] + 1)
        look = {"label": PFA[method][0], "ls": "--" if method.endswith("-em") else "-"}
        look["color"] = f"C{list(PFA).index(method) // 2}"
        band(axes[0, 0], iteration, curve, **look)
        band(axes[0, 1], iteration * iteration_seconds(results, name), curve, **look)
    axes[0, 0].set(xlabel="iteration after burn-in", ylabel="perplexity of a draw")
    axes[0, 1].set(xlabel="seconds after burn-in")
    axes[0, 0].legend()
    page.figure("000_fig1", figure, "Perplexity of single draws: mean and range of the seeds.")
    page.say("""150 + 150 iterations, a tenth of the paper's, by date (11,314 posts to learn from,
        500 of the others to test). The topics' word distributions are moved by SGRLD in all rows, the
        documents by exact Gibbs (the paper's 20 steps of RHMC for them are not to be had: it does not say
        in which metric); the methods differ in what moves E, T and the hyperparameters,
        and whether the masses of the last two are learned. That those without a metric differ little is no wonder: the weights of 100
        topics say little beside the topics themselves, and momenta are drawn from the mass that they are to teach.
        SG-NPHMC in its canonical form is SGNHT (EQUATIONS 11), and with the same mass of its thermostat, as here, the
        draws are the same, bit for bit: only S_count differs, 50 for its EM form and 100 for the others.""")
    if "sgr-nphmc" in names:
        write_metric(page, results, names["sgr-nphmc"])
    write_whole_pfa(page, results, names)
    write_wikipedia_pfa(page, results)


def write_metric(page, results, name):
    page.say(f"""The metric of SGR-NPHMC, of which the paper says no more than that it is diagonal, is what prior and documents are
        expected to tell of each weight (EQUATIONS 12); its step is in the units of that metric. Where the implicit equations have no
        solution the chain stays where it was, which is not in its law: in {results.diverging(name):.1%} of the iterations here; with a
        step of 0.05 often, once topics have died. After so few iterations a perplexity is that of a chain on its way.""")


def write_whole_pfa(page, results, shorter):
    """As many iterations as the paper's, of one seed or two, beside the same seed of the shorter runs."""
    names = made_of(results, "000/topics/whole", PFA)
    if not names:
        return
    rows, scores = [], {}
    for method, name in names.items():
        label, papers, seconds = PFA[method]
        seeds = [name] + [again for again in [f"{name}/2"] if results.has(again)]
        scores[method] = [averaged(results, seed)[0] for seed in seeds]
        left = [int((results.draws(seed, "topic_share", "averages")[0, 0] > ALIVE).sum()) for seed in seeds]
        plain = scores.get(method.removesuffix("-em"), []) if method.endswith("-em") else []
        if method == "sg-nphmc-em":
            plain = scores.get("sgnht", [])
        short = averaged(results, shorter[method])[0] if method in shorter else None
        rows.append([label, papers[NEWS], ", ".join(f"{score:.0f}" for score in scores[method])])
        rows[-1] += [", ".join(f"{a - b:+.1f}" for a, b in zip(scores[method], plain)) or None]
        rows[-1] += [short, ", ".join(map(str, left)), seconds, iteration_seconds(results, name)]
    header = ["method", f"paper, {NEWS}", "1500 + 1500 iterations, by seed", "less plain", "150 + 150, the first seed"]
    page.table([*header, "topics left of 100", "paper, s an iteration", "ours"], rows)
    page.say("""The paper's iterations, by one seed, of SGNHT by two: too few to tell chance by. SG-NPHMC has the draws of SGNHT. In
        each pair of one seed the EM form is the lower, by about one in a hundred, which is less than the paper has and less than two
        seeds of one method are apart. SGR-NPHMC, much the lowest after a tenth of the iterations, rises from then on, as topics die;
        by the others they have died sooner, and it stays below.""")


def write_wikipedia_pfa(page, results):
    page.heading("000, Table 4: Wikipedia in the place of Reuters", 3)
    names = made_of(results, "000/topics/wiki10k", PFA)
    if not names:
        return page.say("Not run.")
    write_methods(page, results, names, REUTERS)
    page.say("""The Reuters corpus (RCV1: 804,414 documents, 10,000 words) is not to be had. In its place are 261,409
        articles of Wikipedia (10,000 words), of which 500 test: the paper's perplexities are those of another corpus.
        75 + 75 iterations, a twentieth of the paper's, take 150,000 documents in minibatches of 100. S_count is 25 in all, where the
        paper has 50 and 100, so that there are three M-steps in warmup; SG-NPHMC has then the draws of SGNHT.""")


# ---- online LDA ----


def write_online(page, results):
    page.heading("002, Fig. 3: online LDA of Wikipedia", 3)
    names = made_of(results, "002/topics", ONLINE)
    if not names:
        return page.say("Not run.")
    curves = {ONLINE[method][0]: history(results, name) for method, name in names.items()}
    last = {label: curve[:, -1] for label, curve in curves.items()}
    pairs = [("SGRHMC", "SGRLD"), ("SGRLD", "SGLD"), ("SGRHMC", "SGHMC"), ("SGHMC", "SGLD")]
    page.verdict(
        lower("Lower perplexity after 10,000 articles", last, {f"{a} than {b}": (a, b) for a, b in pairs}),
    )
    rows = []
    for method, name in names.items():
        label, paper = ONLINE[method]
        rows.append([label, paper, 2 * iteration_seconds(results, name), span(last[label]), chosen(results, method)])
    header = ["method", "paper, s per 100 articles", "ours", "perplexity after 10,000", "step, and what chose it"]
    page.table(header, rows)
    figure, axes = panels(1, 1, 5, 3)
    for label, curve in curves.items():
        band(axes[0, 0], 50 * np.arange(1, curve.shape[1] + 1), curve, label=label)
    axes[0, 0].set(xlabel="articles", ylabel="perplexity of a draw")
    logarithmic(axes[0, 0])
    axes[0, 0].legend()
    page.figure("002_fig3", figure, "Mean and range of three runs; the paper's curves begin at 3500, and the best ends near 1000.")
    page.say("""A stream of 144,467 articles of 20 words or more, of which 10,000 are drawn, where the paper has one of 3.3
        million. SGLD and SGHMC move the expanded natural form: they
        cannot keep the expanded mean above zero. The paper found its steps by a search over a grid, but for SGRLD's, which
        are another paper's; all of ours are of one: in brackets, what one
        chain with each step makes of 500 articles that are in neither the stream nor the test. SGRLD's
        steps fall by (1 + t / 1000)^-0.6, as there. The paper's step of SGRHMC, 0.02, does not carry over: its friction is
        1 / G = theta in this metric, and eps theta must stay below 2 where theta is as large as the count of
        a word in a topic, which grows with the corpus; and where that friction is strong, SGRHMC is SGLD without a metric.""")
    write_topics(page, results, "002/topics/sgrhmc")


def chosen(results, method):
    """The step of a run, and what those tried for it made of the articles they were tried on."""
    step = setting(results, f"002/topics/{method}")
    tried = {}
    for name in results.runs:
        if name.startswith(f"002/steps/{method}/") and results.has(name):
            diverged = results.diverging(name) > 0
            tried[setting(results, name)] = np.inf if diverged else float(averaged(results, name)[0])
    finite = {h: x for h, x in tried.items() if np.isfinite(x)}
    words = "; ".join(f"{h}: {x:.0f}" if np.isfinite(x) else f"{h}: diverged" for h, x in tried.items())
    best = min(finite, key=finite.get, default=None)
    return f"{step} ({words})" if best == step else f"{step}, not the best of ({words})"


def setting(results, name, key="sampler.step_size"):
    found = [s.split("=")[1] for s in results.runs[name].settings if s.startswith(f"{key}=")]
    return found[-1] if found else "that of the config"


def write_topics(page, results, name):
    """As Table S.1: the heaviest words of some topics."""
    if not results.has(name):
        return
    phi = results.draws(name, "phi", "averages")[0, 0]
    share = results.draws(name, "topic_share", "averages")[0, 0]
    words = [b"".join(word).decode() for word in np.atleast_2d(results.draws(name, "word", "averages"))]
    heaviest = np.argsort(-share)[:TOPICS]
    page.say(f"""As Table S.1, the {WORDS} heaviest words of {TOPICS} topics, the largest here: of the last draw of the first
        run of SGRHMC.""")
    rows = []
    for topic in heaviest:
        top = [words[i] for i in np.argsort(-phi[topic])[:WORDS]]
        rows.append([top[0].upper(), *top[1:]])
    page.table(["topic", *[""] * (WORDS - 1)], rows)


# ---- abstracts ----


def write_icml(page, results):
    page.heading("004, Table 1 and Fig. 3: LDA of ICML abstracts", 3)
    scores = {}
    for method in ICML:
        for h in STEPS:
            name = f"004/topics/{method}/{h}"
            if results.has(name):
                scores[method, h] = averaged(results, name)
    if not scores:
        return page.say("Not run.")
    means = {key: float(np.mean(x)) if np.isfinite(x).all() else None for key, x in scores.items()}
    best, rows = {}, []
    for method, (label, paper) in ICML.items():
        steps = [h for h in STEPS if means.get((method, h)) is not None]
        if steps:
            best[label] = scores[method, min(steps, key=lambda h: means[method, h])]
        cells = [span(scores[method, h]) if (method, h) in scores else None for h in STEPS]
        rows.append([label, paper, float(best[label].mean()) if label in best else None, *cells])
    if results.has("004/topics/gibbs"):
        gibbs = averaged(results, "004/topics/gibbs")
        rows.append(["Gibbs", GIBBS, float(gibbs.mean()), span(gibbs), None, None])
        best["Gibbs"] = gibbs
    families = {"msgnht": "mSGNHT", "sghmc": "SGHMC"}
    splits = {f"{words}, h = {h}": ((f"{k}-s", h), (f"{k}-e", h)) for k, words in families.items() for h in STEPS}
    pairs = [("mSGNHT-S", "SGHMC-S"), ("mSGNHT-S", "SGRLD"), ("Gibbs", "mSGNHT-S"), ("Gibbs", "SGRLD")]
    page.verdict(
        lower("The splitting has the lower perplexity", scores, splits),
        lower("Lower at the best step", best, {f"{a} than {b}": (a, b) for a, b in pairs}),
    )
    page.table(["method", "paper", "ours, best", *(f"h = {h}" for h in STEPS)], rows)
    figure, axes = panels(1, len(STEPS), 3.2, 2.8, sharey=True)
    for ax, h in zip(axes[0], STEPS):
        for i, (method, (label, _)) in enumerate(ICML.items()):
            if (method, h) in scores:
                curve = history(results, f"004/topics/{method}/{h}")
                band(ax, np.arange(1, curve.shape[1] + 1), curve, label=label, color=f"C{i}")
        if results.has("004/topics/gibbs"):
            curve = history(results, "004/topics/gibbs")
            band(ax, np.arange(1, curve.shape[1] + 1), curve, label="Gibbs", color="C6")
        ax.set(xlabel="iteration", title=f"h = {h}")
    logarithmic(axes[0, 0])
    axes[0, 0].set(ylabel="perplexity of a draw")
    axes[0, 0].legend(ncols=2, loc="upper right")
    page.figure("004_fig3", figure, "Mean and range of ten seeds; an iteration of Gibbs is a sweep over all abstracts.")
    page.say("""Means and ranges of ten seeds; a dash: all of them diverged. 300 + 700 iterations of one
        step each, minibatches of 5, diffusion and friction 0.75; 766 abstracts, which is not the
        paper's matrix (765), split four to one at random.""")


# ---- deep Poisson factor analysis ----


def write_deep(page, results):
    page.heading("004, Fig. 5: deep Poisson factor analysis of Wikipedia", 3)
    steps = ("1e-4", "1e-5")
    names = {f"{label}, h = {h}": (f"004/deep/msgnht-{i}/{h}", 300) for h in steps for i, label in INTEGRATORS.items()}
    names["LDA, SGRLD"] = ("004/deep/lda", 100)
    names = {label: run for label, run in names.items() if results.has(run[0])}
    if not names:
        return page.say("Not run.")
    scores = {label: averaged(results, name) for label, (name, _) in names.items()}
    splits = {f"h = {h}": (f"mSGNHT-S, h = {h}", f"mSGNHT-E, h = {h}") for h in steps}
    page.verdict(
        lower("The splitting has the lower perplexity", scores, splits),
        lower("The deep model has", scores, {"than LDA": ("mSGNHT-S, h = 1e-4", "LDA, SGRLD")}),
    )
    figure, axes = panels(1, 1, 5, 3)
    rows = []
    for i, (label, (name, documents)) in enumerate(names.items()):
        curve = history(results, name)
        seen = documents * np.arange(1, curve.shape[1] + 1)
        band(axes[0, 0], seen, curve, label=label, ls="--" if "-E" in label else "-", color=f"C{i}")
        rows.append([label, int(seen[-1]), span(curve[:, -1]), span(scores[label]), iteration_seconds(results, name)])
    axes[0, 0].set(xlabel="articles seen", ylabel="perplexity of a draw")
    logarithmic(axes[0, 0])
    axes[0, 0].legend()
    page.figure("004_fig5", figure, "Mean and range of three seeds. Each of the three blocks of DPFA has minibatches of its own.")
    page.table(["method", "articles seen", "of the last draw", "of the draws of the second half", "s an iteration"], rows)
    page.say("""60,000 articles of a stream of 144,467, where the paper has ten million: the beginning of its curves
        at best. LDA has as many topics, and sees as many articles; its topics learn from all of them, those of DPFA
        from a third.""")
