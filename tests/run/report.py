#!/usr/bin/env python3
"""`emass report`: a page that is whole, needs nothing else, lets no name out of its quotes, says what
the file says, and is bounded; figures that are XML. The numbers are checked in the JSON of the page, and
what its script draws of them by an interpreter (duk or node). TAP; $1: the build."""
import html
import html.parser
import os
import re
import tempfile
import xml.etree.ElementTree

from lib import EMASS, drawn_report, finish, limited, report, report_data, skip

VOID = {"meta", "br"}
EVIL = "<img src=x onerror=alert(1)>"
SECTIONS = ["chains", "next", "table", "chains-more", "forest", "pairs", "energy", "mass", "steps", "loo", "cost", "config"]
CONFIGS = {
    "schools": "model: {name: eight_schools, log_likelihood: true}\nrun: {chains: 3, draws: 150}\noutput: {save_warmup: true}\n",
    "wild": "model: {name: eight_schools}\nsampler: {name: nuts, step_size: 1.2, max_treedepth: 2}\n"
            "mass: {estimator: none}\nrun: {chains: 9, warmup: 0, draws: 60}\n",
    "evil": "model: {name: linear, data: evil.csv, standardise: true}\nrun: {chains: 2, draws: 40}\n",
    "chains": "model: {name: gaussian, dim: 2}\nrun: {chains: 1000, warmup: 5, draws: 20}\n"
              "sampler: {leapfrog_steps: 2, step_size: 0.5}\n",
    "wide": "model: {name: gaussian, dim: 10000}\nrun: {chains: 2, warmup: 5, draws: 12}\n"
            "sampler: {leapfrog_steps: 2, step_size: 0.5}\nmass: {estimator: none, structure: diag}\n",
    "tempered": "model: {name: eight_schools}\ntemper: {}\nrun: {chains: 2, warmup: 60, draws: 40}\n",
    "one": "model: {name: gaussian, dim: 1}\nrun: {chains: 1, warmup: 5, draws: 1}\n"
           "sampler: {leapfrog_steps: 2, step_size: 0.5}\n",
}


class Page(html.parser.HTMLParser):
    """Tags that are closed in their order, and what they say."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.ids, self.links, self.text, self.wrong = [], [], [], [], "", ""
        self.feed(text)
        self.wrong = self.wrong or " ".join(self.open)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.ids += [value for name, value in attrs if name == "id"]
        self.links += [(name, value) for name, value in attrs if name in ("src", "href") or name.startswith("on")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong = self.wrong or f"</{tag}>"

    def handle_data(self, data):
        self.text += data


def draw(name):
    """The data of a page, and the page as it is drawn: its text and its elements."""
    with open(f"{name}.html") as file:
        whole = file.read()
    bare = Page(whole)
    report(not bare.wrong and not bare.links and bare.tags.count("script") == 2 and not {"img", "link", "iframe"} & set(bare.tags)
           and "default-src 'none'" in whole, f"{name}: a whole file that loads nothing", bare.wrong, bare.links)
    text = drawn_report(f"{name}.html")
    if text is None:
        skip(f"{name}: the page as it is drawn", "neither duk nor node is installed")
        return report_data(f"{name}.html"), None, None
    page = Page(text)
    report(not page.wrong and not [value for _, value in page.links if not value.startswith("#")]
           and not {"script", "img", "link", "iframe"} & set(page.tags), f"{name}: a whole page that loads nothing", page.wrong, page.links)
    report(not re.search(r'd="[^"]*(nan|inf|null|undefined)', text, re.I), f"{name}: no figure has what is no number")
    check_legible(name, text)
    return report_data(f"{name}.html"), text, page


def make(name):
    with open(f"{name}.yaml", "w") as file:
        file.write(CONFIGS[name])
    ran = limited(EMASS, "run", f"{name}.yaml", "--quiet")
    made = limited(EMASS, "report", f"{name}.h5")
    if ran.returncode or made.returncode:
        report(False, name, ran.stderr, made.stderr)
        finish()
    return draw(name)


def check_schools():
    data, text, page = make("schools")
    figures = data["figures"]
    report(page is None or [name for name in page.ids if name in SECTIONS] == SECTIONS, "all sections, in their order", page and page.ids)
    lines = limited(EMASS, "summary", "schools.h5", "--csv").stdout.splitlines()[1:]
    rows = data["table"]["rows"]
    means = [float(row[1]) for row in rows]
    theirs = [float(re.sub('^"[^"]*"|^[^,]*', "", line).split(",")[1]) for line in lines]
    report(len(rows) == len(lines) and all(abs(a - b) <= 1e-3 * max(abs(b), 0.1) for a, b in zip(means, theirs)),
           "the table is that of emass summary", means, theirs)
    shown = page and re.findall(r"<tr><th scope=\"row\">(.*?)</th>(.*?)</tr>", text)
    report(page is None or [[html.unescape(name), *re.findall(r"<td[^>]*>(.*?)</td>", cells)] for name, cells in shown] == rows,
           "and it is drawn", shown)
    said = limited("ncdump", "-h", "schools.h5").stdout
    verdict = re.search(r':verdict = "(.*?)"', said)
    report(not verdict or (verdict[1] == data["verdict"] and (page is None or verdict[1].split(": ")[1] in page.text)),
           "the verdict is that of the file", data["verdict"])
    said = re.search(r"elpd_loo (\S+) \(standard error (\S+)\), p_loo (\S+):", limited(EMASS, "loo", "schools.h5").stdout)
    loo = figures["loo"][0]
    report(said and all(abs(float(a) - b) < 0.06 for a, b in zip(said.groups(), (loo["elpd"], loo["se"], loo["p"])))
           and loo["observations"] == 8 and loo["high"] == len(loo["bad"]) == sum(k > loo["good_k"] for _, k in loo["good"] + loo["bad"]),
           "and elpd_loo that of emass loo", said, loo)
    report(page is None or (re.search(r"elpd_loo (\S+), standard error (\S+); p_loo (\S+)<", text)
                            and re.search(r"k above 0\.\d\d: \d of 8[<,]", text)), "and it is drawn")
    report("theta[Mt. Hermon]" in [row[0] for row in rows] and (page is None or "St. Paul&#39;s" in text), "labels, escaped")
    check_figures(data)
    check_files()


def check_figures(data):
    """What the figures are drawn of is what the draws say."""
    rows = {row[0]: dict(zip(data["table"]["columns"], map(float, row[1:]))) for row in data["table"]["rows"]}
    figures, close = data["figures"], lambda a, b: abs(a - b) <= 1e-3 * max(abs(a), abs(b), 0.1)
    named = [(row["quantiles"][::2], [rows[row["name"]][percent] for percent in ("5%", "50%", "95%")]) for row in figures["forest"]["rows"]]
    report(len(named) == len(rows) and all(close(a, b) for q, r in named for a, b in zip(q, r))
           and all(row["quantiles"] == sorted(row["quantiles"]) for row in figures["forest"]["rows"]), "intervals are those of the table", named)
    chains = figures["chains"]
    report(len(chains) == 6 and chains[0]["r_hat"] == max(chain["r_hat"] for chain in chains)
           and all(close(chain["r_hat"], rows[chain["name"]]["r_hat"])
                   and round(chain["ess_bulk"]) == rows[chain["name"]]["ess_bulk"] for chain in chains)
           and close(max(row["r_hat"] for row in rows.values()), chains[0]["r_hat"]), "chains: those that mix worst, with their numbers")
    for chain in chains[:2]:
        draws = sum(chain["traces"], [])
        report(len(chain["traces"]) == 3 and len(draws) == 450 and close(sum(draws) / 450, rows[chain["name"]]["mean"]), "their draws", chain["name"])
        report(all(sum(counts) == 150 for counts in chain["ranks"]) and {sum(bin) for bin in zip(*chain["ranks"])} == {75},
               "and their ranks, of which each bin has as many", chain["ranks"])
    pairs = figures["pairs"]
    report([v["name"] for v in pairs["variables"]] == [chain["name"] for chain in chains[:4]] or pairs["gathering"] > 0, "pairs of these")
    report(all(v["range"][0] <= min(v["draws"]) and len(v["draws"]) == 450 for v in pairs["variables"]) or pairs["outside"] > 0, "with all draws")
    energy, mass = figures["energy"], figures["mass"]
    report(430 < sum(energy["marginal"]) <= 450 and sum(energy["transition"]) <= 447
           and f"E-BFMI {energy['e_bfmi']:.2g}" in data["verdict"], "energies", energy["e_bfmi"], data["verdict"])
    report(len(mass["iteration"]) == len(mass["largest_eigenvalue"]) == len(mass["smallest_eigenvalue"]) > 1
           and all(a >= b > 0 for a, b in zip(mass["largest_eigenvalue"], mass["smallest_eigenvalue"])), "eigenvalues", mass)
    steps = {s["statistic"]: s for s in figures["steps"]}
    report(set(steps) == {"step_size", "acceptance_rate"} and all(
        s["warmup"] == data["attributes"]["tuning_steps"] and abs(s["x"][-1] - (s["warmup"] + 150)) <= 2
        and all(low <= mean + 1e-3 and mean <= high + 1e-3 for low, mean, high in zip(s["low"], s["mean"], s["high"])) for s in steps.values())
        and 0.5 < steps["acceptance_rate"]["mean"][-1] <= 1, "step size and acceptance, warmup first")


def check_files():
    made = limited(EMASS, "report", "schools.h5", "--var", "mu", "--var", "tau", "--figures", "figures")
    if "without Duktape" in made.stderr:
        report(made.returncode == 2 and not os.path.exists("figures"), "figures as files are refused by a build without Duktape", made.stderr)
        skip("figures as files", "emass was built without Duktape")
        return
    chosen = [row[0] for row in report_data("schools.html")["table"]["rows"]]
    report(made.returncode == 0 and chosen == ["mu", "tau"], "chosen variables", made.stderr, chosen)
    figures = sorted(os.listdir("figures"))
    plain = [open(f"figures/{name}").read() for name in figures]
    report(not [text for text in plain if "var(" in text or "@media" in text or not re.match(r'<svg [^>]* width="\d+" height="\d+"', text)]
           and all(re.search(r"\.c0\{stroke:#[0-9a-f]{6}\}", text) for text in plain),
           "figures as files have plain colours and a size, as programs for pictures need", figures)
    for name, text in zip(figures, plain):
        check_legible(name, text)
    parsed = [xml.etree.ElementTree.parse(f"figures/{name}").getroot().tag for name in figures]
    report(figures == ["chains-1.svg", "chains-2.svg", "energy.svg", "forest.svg", "loo-1.svg", "mass.svg", "pairs.svg", "steps-1.svg", "steps-2.svg"]
           and set(parsed) == {"{http://www.w3.org/2000/svg}svg"}, "figures as files", figures)


def boxes(svg):
    """Where the texts of a figure are, about: (left, right, bottom, text)."""
    for x, y, anchor, kind, said in re.findall(r'<text x="([^"]*)" y="([^"]*)" text-anchor="(\w+)" class="(\w*)">([^<]*)<', svg):
        said = html.unescape(said)
        wide = (6.8 if kind == "head" else 6.1) * len(said)
        left = float(x) - {"start": 0, "middle": wide / 2, "end": wide}[anchor]
        yield left, left + wide, float(y), said


def check_legible(name, text):
    """On 420 pixels, of which 360 are for a figure, letters of 12 units have 9; no text is on another or outside."""
    widths, wrong = [], []
    for svg in text.split("<svg")[1:]:
        widths.append(float(re.search(r'viewBox="0 0 ([\d.]+) ', svg)[1]))
        placed = sorted(boxes(svg.split("</svg>")[0]), key=lambda box: box[2])
        wrong += [box for box in placed if box[0] < -4 or box[1] > widths[-1] + 4]
        for i, a in enumerate(placed):
            for b in placed[i + 1:]:
                if b[2] - a[2] >= 11:
                    break
                wrong += [(a, b)] if a[0] < b[1] and b[0] < a[1] else []
    report(max(widths) <= 490 and not wrong, f"{name}: figures are legible on 420 pixels", max(widths), wrong[:9])


def check_wild():
    data, text, page = make("wild")
    divergent = re.search(r"Divergences: (\d+) of", "\n".join(data["advice"]))
    pairs = data["figures"]["pairs"]
    report(data["verdict"].startswith("not converged") and divergent and pairs["diverging"] == int(divergent[1])
           and all(len(v["divergent"]) == int(divergent[1]) for v in pairs["variables"]), "divergent transitions are counted", divergent)
    report("emass run --set model.log_likelihood=true" in data["loo_hint"], "how there would be log likelihoods")
    report(all(len(chain["traces"]) == 8 for chain in data["figures"]["chains"]), "eight of nine chains have a line")
    if page:
        marks = re.findall(r'class="mark bad" d="([^"]*)"', text)
        report("not converged" in page.text and any(mark.count("M") == int(divergent[1]) for mark in marks), "and marked",
               divergent, [mark.count("M") for mark in marks])
        report("emass run --set model.log_likelihood=true" in page.text, "the hint is drawn")
        report(len(set(re.findall(r'class="thin (c\d)"', text))) == 8, "and so are eight lines")


def check_evil():
    with open("evil.csv", "w") as file:
        file.write(f'"{EVIL}","a""b&c",y\n' + "".join(f"{i % 7},{i % 5},{i % 3}\n" for i in range(40)))
    data, text, page = make("evil")
    with open("evil.html") as file:
        whole = file.read()
    report("<img" not in whole and f"beta[{EVIL}]" in [row[0] for row in data["table"]["rows"]], "names are text in the file, whatever is in them")
    report(page is None or (EVIL not in text and f"beta[{EVIL}]" in page.text and 'a"b&c' in page.text), "and in the page")
    shown = [re.sub(r"beta(_original)?\[(.*)\]", r"\2", chain["name"]) for chain in data["figures"]["chains"]]
    report(shown and len(set(shown) - {"intercept"}) == len([name for name in shown if name != "intercept"]),
           "of a coefficient on two scales one is shown", shown)


def check_bounds():
    for name, most in (("chains", 600_000), ("wide", 400_000), ("one", 100_000)):
        data, text, page = make(name)
        report(os.path.getsize(f"{name}.html") < most, f"{name}: less than {most} bytes", os.path.getsize(f"{name}.html"))
        report(name != "wide" or (len(data["table"]["rows"]) == 300 and data["table"]["lines"] == 10000
                                  and (page is None or (text.count('<th scope="row">') == 300 and "10000" in page.text))),
               f"{name}: the rows that mix worst, of very many")


def check_refusals():
    with open("mine.html", "w") as file:
        file.write("<!doctype html>mine")
    os.mkfifo("pipe.html")
    os.mkdir("pipes")
    os.mkfifo("pipes/energy.svg")
    for what, *words in (("pipe.html: found a FIFO", "schools.h5", "--output", "pipe.html"),
                         ("mine.html: found a regular file, expected a folder", "schools.h5", "--output", "new.html", "--figures", "mine.html"),
                         ("pipes/energy.svg: found a FIFO", "schools.h5", "--output", "figures.html", "--figures", "pipes"),
                         ("not a report of emass", "schools.h5", "--output", "mine.html"), ("no such variable", "schools.h5", "--var", "x"),
                         ("cannot be written", "schools.h5", "--output", "none/x.html"), ("missing.h5", "missing.h5"),
                         ("expected an HDF5 file", "evil.csv"), ("expected one file",)):
        refused = limited(EMASS, "report", *words)
        report(refused.returncode == 2 and what in refused.stderr and len(refused.stderr.splitlines()) == 1
               and not refused.stdout, f"refused: {what}", refused.stderr)
    with open("mine.html") as file:
        report(file.read() == "<!doctype html>mine", "what is somebody's stays")
    report(not [name for name in os.listdir() if name.endswith((".new", ".part"))] and not os.path.exists("new.html"), "nothing is left behind")


def check_tempered():
    """The ladder, its rejection rates, and the evidence of each round by leg, as the file has them."""
    data, text, _ = make("tempered")
    try:
        import h5py
        import numpy
    except ImportError:
        skip("tempering: the numbers of the file", "python3 has no h5py")
        return
    with h5py.File("tempered.h5") as file:
        group = {name: numpy.ravel(file["tempering"][name][:]).tolist()
                 for name in ("beta", "rejection", "round_log_evidence", "index_process")}
    drawn = data["figures"]["tempering"]
    report(all(numpy.allclose(drawn[name], value, rtol=1e-14) for name, value in group.items()) and len(group["beta"]) == len(group["rejection"]) + 1
           and len(group["round_log_evidence"]) == 2 * len(drawn["round_scans"]) > 2, "tempering: the numbers of the file", drawn)
    if text:
        report('id="tempering"' in text and text.count("leg") > 0, "tempering: its figure")


def check_early():
    """A run that was stopped in warmup, and a file that has predictions alone: what to do about it."""
    stopped = limited(EMASS, "run", "chains.yaml", "--output", "early.h5", "--max-time", "0s", "--quiet")
    for command in ("report", "summary"):
        done = limited(EMASS, command, "early.h5")
        report(stopped.returncode == 75 and done.returncode == 2 and "no draws yet" in done.stderr and "--resume" in done.stderr,
               f"{command} of a run that was stopped in warmup names --resume", done.stderr)


def check_links():
    os.symlink("led/to.html", "link.html")
    os.mkdir("led")
    made = [limited(EMASS, "report", "schools.h5", "--output", "link.html").returncode for _ in range(2)]
    report(made == [0, 0] and os.readlink("link.html") == "led/to.html" and os.listdir("led") == ["to.html"], "a link stays one, to the page")


def check_ranks():
    """The numbers are computed on all ranks, and the page is the same."""
    made = limited("mpirun", "-n", "2", "--oversubscribe", EMASS, "report", "schools.h5", "--output", "ranks.html")
    alone = limited(EMASS, "report", "schools.h5", "--output", "alone.html")
    pages = [open(name, "rb").read() for name in ("ranks.html", "alone.html") if os.path.exists(name)]
    report(made.returncode == alone.returncode == 0 and len(pages) == 2 and pages[0] == pages[1], "the same page on two ranks", made.stderr)


def check_foreign():
    try:
        import arviz
        import numpy
    except ImportError:
        return
    draws = numpy.random.default_rng(1).normal(size=(4, 300, 2))
    arviz.from_dict(posterior={"x": draws}).to_netcdf("theirs.nc")
    made = limited(EMASS, "report", "theirs.nc", "--output", "theirs.html")
    data, _, page = draw("theirs")
    report(made.returncode == 0 and data["verdict"].startswith("converged: worst R-hat") and not data["advice"]
           and (page is None or (re.search("\u2713 converged *worst R-hat", page.text) and "Nothing stands against" in page.text)),
           "a file of ArviZ's", made.stderr)


def check_gathering():
    """Divergences in the neck of a funnel, of which other parameters mix worse; few; anywhere; and scales apart."""
    try:
        import arviz
        import numpy
    except ImportError:
        return
    random = numpy.random.default_rng(1)
    tau = numpy.exp(random.normal(0, 1.5, (4, 500)))
    slow = random.normal(size=(4, 500, 5)) + numpy.arange(4)[:, None, None] * 0.15
    theta = random.normal(size=(4, 500, 3)) * tau[..., None]
    neck = (tau < numpy.quantile(tau, 0.1)) & (random.random((4, 500)) < 0.5)
    one = numpy.zeros((4, 500), bool)
    one[1, 7] = True
    for name, diverging, expected, why in (
            ("neck", neck, {"tau", "theta[0]", "theta[1]", "theta[2]"}, r"\d+ divergent: where they gather most"),
            ("few", one, {f"slow[{i}]" for i in range(5)}, "1 divergent, no clear pattern: those that mix worst"),
            ("anywhere", random.random((4, 500)) < 0.03, {f"slow[{i}]" for i in range(5)}, "no clear pattern"),
            ("none", one & False, {f"slow[{i}]" for i in range(5)}, ">those that mix worst<")):
        arviz.from_dict(posterior={"slow": slow, "theta": theta, "tau": tau, "log_tau": numpy.log(tau)},
                        sample_stats={"diverging": diverging, "lp": tau}).to_netcdf(f"{name}.nc")
        made = limited(EMASS, "report", f"{name}.nc", "--output", f"{name}.html")
        data, text, _ = draw(name)
        pairs = data["figures"]["pairs"]
        shown = {v["name"].replace("log_tau", "tau") for v in pairs["variables"]}
        report(made.returncode == 0 and len(shown) == 4 and shown <= expected and (text is None or re.search(why, text)),
               f"pairs, {name}: where divergent draws gather, or else what mixes worst", shown, made.stderr)
        if text:
            first = [kind for kind in re.findall(r'<section><h2 id="(\w+)"', text) if kind != "next"][:2]
            report(pairs["gathering"] == (4 if name == "neck" else 0) and "pairs" not in first if name != "neck" else "pairs" in first,
                   f"pairs, {name}: beside the first figure only where divergent draws gather", first)
    heavy = numpy.stack([random.standard_t(2, (4, 500)), random.normal(size=(4, 500)), random.normal(size=(4, 500))], 2)
    diverging = heavy[..., 0] < numpy.quantile(heavy[..., 0], 0.002)
    arviz.from_dict(posterior={"h": heavy}, sample_stats={"diverging": diverging, "lp": tau}).to_netcdf("heavy.nc")
    made = limited(EMASS, "report", "heavy.nc", "--output", "heavy.html")
    data, text, _ = draw("heavy")
    pairs = data["figures"]["pairs"]
    report(10 <= pairs["outside"] <= 20 and pairs["outside_divergent"] > 0 and report_data("none.html")["figures"]["pairs"]["outside"] == 0,
           "pairs: what lies outside is counted", pairs["outside"], pairs["outside_divergent"])
    if text:
        said = re.search(r">(\d+) of 2000 draws are outside, divergent ones too<", text)
        dots = re.search(r'class="dot c0" d="([^"]*)"', text)[1]
        across = sorted(float(x) for x in re.findall(r"M(-?[\d.]+)", dots))
        report(said and int(said[1]) == pairs["outside"] and across[-1] - across[0] > 50
               and across[len(across) * 9 // 10] - across[len(across) // 10] > 10,
               "pairs: heavy tails do not squeeze the rest", said and said[0], across[:3], across[-3:])
    scale = numpy.array([1e-3, 1, 2e-3, 2e4, 1.5])
    arviz.from_dict(posterior={"b": random.normal(size=(4, 100, 5)) * scale, "like": random.normal(size=(4, 100, 5)),
                               "fixed": numpy.zeros((4, 100, 3)) + [0, 1e6, 3]}).to_netcdf("scales.nc")
    made = limited(EMASS, "report", "scales.nc", "--output", "scales.html")
    data, text, _ = draw("scales")
    report([row["name"] for row in data["figures"]["forest"]["rows"]][:5] == [f"b[{i}]" for i in range(5)], "forest: all rows", made.stderr)
    if not text:
        return
    svg = text[text.index('id="forest"'):]
    svg = svg[:svg.index("</svg>")]
    names = re.findall(r'text-anchor="end"[^>]*>([^<]*)<', svg)
    thin = [[float(x) for x in re.findall(r"[ML]?(-?[\d.]+)[ ,]-?[\d.]+", d)] for d in re.findall(r'class="line c0" d="([^"]*)"', svg)]
    report(names[:5] == ["b[3]", "b[1]", "b[4]", "b[0]", "b[2]"] and names[5:10] == [f"like[{i}]" for i in range(5)]
           and all(x[1] - x[0] >= 3 for x in thin[:10]), "forest: intervals of one variable on axes where all are seen", names, thin)


with tempfile.TemporaryDirectory(prefix="emass-report-") as work:
    os.chdir(work)
    check_schools()
    check_wild()
    check_evil()
    check_bounds()
    check_refusals()
    check_tempered()
    check_early()
    check_links()
    check_ranks()
    check_foreign()
    check_gathering()
finish()
