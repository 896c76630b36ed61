"""The table and the picture of all posteriors: seconds beside gradients, and what is lost as plainly as what is won.

Called by posteriordb.py --all with rows[posterior, sampler], a list with what was measured for each seed, None where a
run failed or took too long. Figures are medians over seeds; a sampler that has none for most of its seeds has not
ended. Seconds are those of the processor, of one core. Of emass they are those of the program, of which START is taken
off for its start; of the others those of the call that samples and compiles the model, without the start of Python.
"""

import math
import statistics

R_HAT, ESS = 1.01, 400
START = 0.1
LEAST_SECONDS = 0.01
STAN = ("diag", "dense")
# Fisher HMC (arXiv 2603.18845) over Stan's diagonal metric in ESS per gradient, medians over its models.
FISHER_HMC = "Fisher HMC on 114 models: 1.3 with a diagonal, 4 with a low-rank metric"


def without_start(seconds, start=0.0):
    return max(seconds - start, LEAST_SECONDS)


def median_of(runs):
    """Of the seeds of a sampler; None: most have not ended."""
    ended = [run for run in runs if run]
    if 2 * len(ended) <= len(runs):
        return None
    return {key: statistics.median(run[key] for run in ended) for key in ended[0]
            if isinstance(ended[0][key], (int, float)) and all(key in run for run in ended)}


def has_converged(found):
    return bool(found) and found["r_hat"] <= R_HAT and min(found["bulk"], found["tail"]) >= ESS


def ratio(found, key, rivals):
    """To the best of the rivals that ended; None: none did, or this one did not, or its figure is not known."""
    best = max((rival[key] for rival in rivals if rival), default=0)
    return found[key] / best if found and best > 0 and not math.isnan(found[key]) else None


def medians(rows, names, samplers, ours):
    out = {name: {s: median_of(rows[name, s]) for s in samplers} for name in names}
    for of in out.values():
        for s in ours:
            if of.get(s):
                of[s]["bulk_per_s"] = of[s]["bulk"] / without_start(of[s]["seconds"], START)
    return out


def number(value, digits=3):
    if value is None or math.isnan(value):
        return "-"
    return f"{value:.0f}" if value == 0 or abs(value) >= 10 ** (digits - 1) else f"{value:.{digits}g}"


def line(cells, out):
    print("| " + " | ".join(cells) + " |", file=out)


def write(rows, names, samplers, ours, out):
    """One row for each posterior and sampler; then what they come to."""
    found = medians(rows, names, samplers, ours)
    line(["posterior", "sampler", "dimension", "gradients", "seconds", "bulk ESS", "tail ESS", "R-hat", "divergent", "z",
          "MB", "/ Stan, a gradient", "/ Stan, a second"], out)
    line(["---", "---"] + ["--:"] * 11, out)
    for name, of in found.items():
        rivals = [of.get(s) for s in STAN]
        for s in samplers:
            if not of[s]:
                line([name, s] + ["-"] * 11, out)
                continue
            z = max(of[s].get("z", math.nan), of[s].get("z_sd", math.nan))
            ratios = [number(ratio(of[s], key, rivals)) if s in ours else "" for key in ("bulk_per_k", "bulk_per_s")]
            line([name, s, number(of[s]["dim"], 6), number(of[s]["gradients"], 1), number(of[s]["seconds"]),
                  number(of[s]["bulk"], 4), number(of[s]["tail"], 4), f"{of[s]['r_hat']:.3f}",
                  number(of[s]["divergences"], 6), number(z, 2), number(of[s]["memory"]), *ratios], out)
    print(file=out)
    for s in samplers:
        of = [found[name][s] for name in names]
        print(f"{s}: {sum(map(bool, of))} of {len(of)} ended, {sum(map(has_converged, of))} converged "
              f"(R-hat at most {R_HAT}, bulk and tail ESS at least {ESS}).", file=out)
    for s in samplers:
        if s in ours:
            sum_up(found, s, out)


def sum_up(found, sampler, out):
    """The ratios of a sampler to Stan's, over the posteriors that both ended, and each that is below 1."""
    for what, key in (("a gradient", "bulk_per_k"), ("a second", "bulk_per_s")):
        for title, rivals in (("the better of Stan's", STAN), ("Stan's diagonal metric", STAN[:1])):
            ratios = {name: ratio(of[sampler], key, [of.get(r) for r in rivals]) for name, of in found.items()}
            known = sorted((value, name) for name, value in ratios.items() if value is not None)
            if not known:
                continue
            values = [value for value, _ in known]
            mean = math.exp(statistics.fmean(math.log(max(value, 1e-9)) for value in values))
            lost = [f"{name} {number(value, 2)}" for value, name in known if value < 1]
            print(f"\n{sampler} over {title}, bulk ESS {what}, {len(known)} of {len(found)} posteriors: "
                  f"geometric mean {number(mean)}, median {number(statistics.median(values))}, least {number(values[0])}. "
                  f"Lost: {', '.join(lost) if lost else 'none'}."
                  + (f" ({FISHER_HMC}.)" if key == "bulk_per_k" and rivals == STAN[:1] else ""), file=out)


def draw(rows, names, samplers, ours, path):
    """The ratios of the first of our samplers to the better of Stan's, a second and a gradient, each in order."""
    import matplotlib
    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "posteriordb"})
    from matplotlib import colors, pyplot
    found = medians(rows, names, samplers, ours)
    first = next(s for s in samplers if s in ours)
    figure, both = pyplot.subplots(1, 2, figsize=(9, 4), sharey=True, layout="constrained")
    scale = colors.LogNorm(1, max([10, *(of[first]["dim"] for of in found.values() if of[first])]))
    for axes, (what, key) in zip(both, (("gradient", "bulk_per_k"), ("second", "bulk_per_s"))):
        points = sorted((value, of[first]["dim"]) for of in found.values()
                        if (value := ratio(of[first], key, [of.get(r) for r in STAN])) is not None)
        drawn = axes.scatter(range(1, len(points) + 1), [value for value, _ in points], c=[dim for _, dim in points],
                             norm=scale, cmap="viridis", s=22)
        axes.axhline(1, color="grey", linewidth=1)
        axes.set(yscale="log", title=f"bulk ESS a {what}", xlabel="posteriors, in order")
        axes.grid(alpha=0.3)
    both[0].set_ylabel(f"{first} over the better of Stan's")
    figure.colorbar(drawn, ax=both, label="dimension")
    figure.savefig(path, metadata={"Date": None} if path.endswith(".svg") else None)
