"""Paper 000: adaptive sampling with Monte Carlo EM; tables 1, 2 and 3."""

import numpy as np

from papers import plain_numpy
from papers.measure import bias, ess, rmse, spread
from papers.verdict import Claim, apart, below, of_mean

# As the paper prints them, in tables 1 to 3: RMSE of two parameters, and milliseconds; RMSE of two parameters;
# milliseconds on three sets of data.
TABLES = {
    "HMC": ((0.0196, 0.0197, 0.417), (0.0456, 0.1290), (1.435, 0.987, 0.791)),
    "HMC-EM": ((0.0115, 0.0104, 0.423), (0.0145, 0.0851), (1.428, 0.970, 0.799)),
    "RHMC": ((0.0111, 0.0089, 5.748), (0.0091, 0.0574), (1550, 367, 209)),
    "SGHMC": ((0.1590, 0.1646, 0.133), (0.2812, 0.2717), (0.200, 0.136, 0.112)),
    "SGHMC-EM": ((0.0713, 0.2243, 0.132), (0.2804, 0.2583), (0.203, 0.141, 0.131)),
    "SG-NPHMC": ((0.0326, 0.0433, 0.514), (0.4945, 0.4263), (0.731, 0.512, 0.403)),
    "SG-NPHMC-EM": ((0.0274, 0.0354, 0.498), (0.0990, 0.4229), (0.803, 0.525, 0.426)),
    "SGR-NPHMC": ((0.0240, 0.0308, 3.145), (0.1901, 0.1925), (6.720, 4.568, 3.676)),
    "SGNHT": ((0.0344, 0.0335, 0.148), (0.2035, 0.1921), (0.302, 0.270, 0.166)),
    "SGNHT-EM": ((0.0317, 0.0289, 0.148), (0.1983, 0.1729), (0.306, 0.251, 0.175)),
}
SAMPLERS = list(TABLES)
TABLE_1, TABLE_2, TABLE_3 = ({sampler: row[i] for sampler, row in TABLES.items()} for i in range(3))

LEGEND = """RMSE is that of single draws about the values the data were generated with, {truth},
    which is how the paper seems to mean it. It cannot be small: even exact draws scatter by the
    posterior's standard deviation, here {sd}, and about a mean that misses those values; the row
    `exact` is a long, checked run. sd is the draws' standard deviation over the exact one: above 1
    minibatch noise heats the chain, below 1 it is stuck or cold. bias is that of the mean, in exact
    standard deviations. ESS is the smaller of both parameters', of so many draws."""


def write(page, results):
    page.heading("000: adaptive Bayesian sampling with Monte Carlo EM")
    write_table_1(page, results)
    write_table_2(page, results)
    write_table_3(page, results)


# ---- tables 1 and 2: two parameters ----


def normal(results, name):
    return [results.draws(name, variable) for variable in ("mu", "tau")]


def logistic(results, name):
    return list(np.moveaxis(results.draws(name, "beta"), -1, 0))


def measures(draws, truth, exact):
    """RMSE of both, sd, bias, smallest ESS; None where the run is not there."""
    if draws is None:
        return [None] * 7
    return [f(x, y) for f, of in ((rmse, truth), (spread, exact), (bias, exact)) for x, y in zip(draws, of)] + [
        smallest_ess(draws)
    ]


def smallest_ess(draws):
    return f"{min(ess(x) for x in draws):.0f} of {draws[0].size}"


def squared_error(draws, truth, exact):
    """Of each draw, both parameters' together, in variances of the posterior."""
    return of_mean(sum((x - t) ** 2 / np.var(e) for x, t, e in zip(draws, truth, exact)))


def em_lowers(draws_of, truth, exact):
    """Of each sampler that has an EM: how far that is below it."""
    pairs = {s: (draws_of[s], draws_of[f"{s}-EM"]) for s in SAMPLERS if f"{s}-EM" in SAMPLERS}
    errors = {
        s: [squared_error(draws, truth, exact) for draws in pair]
        for s, pair in pairs.items()
        if pair[0] is not None and pair[1] is not None
    }
    return {s: below(em, plain) for s, (plain, em) in errors.items()}


def off_exact(draws, exact):
    """How far the worst of both parameters' means and variances is from the long run's."""
    return apart(
        *((of_mean(x), of_mean(e)) for x, e in zip(draws, exact)),
        *((of_mean((x - np.mean(e)) ** 2), of_mean((e - np.mean(e)) ** 2)) for x, e in zip(draws, exact)),
    )


def compare(page, results, prefix, paper, load, truth, symbols):
    """The table; returns the exact standard deviations, or None."""
    reference = f"{prefix}/reference"
    if not results.has(reference):
        return page.leave_out()
    exact = load(results, reference)
    a, b = symbols
    header = [
        "sampler",
        f"paper: RMSE {a}",
        f"paper: {b}",
        *[f"as printed: {name}" for name in (f"RMSE {a}", b, f"sd {a}", b)],
        *[f"correct: {name}" for name in (f"RMSE {a}", b, f"sd {a}", b, f"bias {a}", b)],
        "correct: ESS",
    ]
    rows, printed_by, correct_by = [], {}, {}
    for sampler in SAMPLERS:
        names = [f"{prefix}/{part}{sampler.lower()}" for part in ("as-printed/", "")]
        both = [load(results, name) if results.has(name) else None for name in names]
        printed, correct = (measures(draws, truth, exact) for draws in both)
        rows.append([sampler, *paper[sampler][:2], *printed[:4], *correct])
        printed_by[sampler], correct_by[sampler] = both
    rows.append(["`exact`", *[None] * 6, *measures(exact, truth, exact)])
    page.verdict(
        Claim("The paper's: EM lowers the RMSE. As printed", em_lowers(printed_by, truth, exact)),
        Claim("Correct ones", em_lowers(correct_by, truth, exact)),
        Claim(
            "Mean and variance of the correct ones are exact",
            {s: off_exact(x, exact) for s, x in correct_by.items() if x is not None},
            equal=True,
        ),
    )
    page.say(
        LEGEND.format(
            truth=f"{a} = {truth[0]} and {b} = {truth[1]}", sd=" and ".join(f"{np.std(x):.4f}" for x in exact)
        )
    )
    page.table(header, rows)
    return exact


def write_table_1(page, results):
    page.heading("Table 1: mean and precision of 5000 normal numbers", 3)
    exact = compare(page, results, "000/normal", TABLE_1, normal, (0, 1), ("mu", "tau"))
    if exact is None:
        return
    below = [s for s in SAMPLERS if TABLE_1[s][0] < np.std(exact[0]) and TABLE_1[s][1] < np.std(exact[1])]
    page.say(f"""{' and '.join(below)} of the paper are below the posterior's own standard
        deviations, which no chain that samples this posterior can be: their RMSE is one of
        running means, or of chains that do not move. For HMC, momenta say nothing about the
        mass (they are N(0, M) whatever M is), so HMC-EM is HMC with a wandering mass: ours has
        the RMSE of HMC.""")
    page.say("""SGHMC as printed ignores the noise of its minibatches and is hot, as in the
        paper, and its EM cools it by learning a mass in proportion to that noise, as in the
        paper; the correct SGHMC takes the estimated noise out of what it injects. One
        thermostat can take away only what is proportional to the mass: SGNHT and SG-NPHMC leave
        mu too hot and tau too cold, and their EM brings the mass towards the noise, in the
        correct form; the printed friction xi M^-1 p of SGNHT-EM keeps no law.""")
    write_stuck(page, results, exact)
    write_times_1(page, results)
    page.say("""Not in the paper, chosen by us: step sizes (HMC 0.01 is the paper's; SGHMC as
        printed 0.004, which shows its heating, the other stochastic ones 0.001; RHMC 0.15 and
        SGR-NPHMC 0.05 in the units of their metric), 10000 draws of 4 chains, kappa = 1 / (k +
        1), and that the mass stops adapting at the end of burn-in. tau is sampled on the log
        scale.""")


def write_stuck(page, results, exact):
    name = "000/normal/stuck"
    if not results.has(name):
        return
    draws = normal(results, name)
    best = min(range(draws[0].shape[0]), key=lambda c: spread(draws[1][c], exact[1]))
    one = [x[best : best + 1] for x in draws]
    row = measures(one, (0, 1), exact)
    accepted = results.draws(name, "acceptance_rate", "sample_stats")[best].mean()
    page.say(f"""How a chain can have a low RMSE: HMC-EM with a step of 0.03 and kappa = 1 / k,
        whose mass drifts until proposals are rejected. Of its 4 chains the narrowest accepts
        {accepted:.1%}; its RMSE is {row[0]:.4f} and {row[1]:.4f}, its sd {row[2]:.2f} and
        {row[3]:.2f} of the exact ones, its ESS {row[6]}.""")


def write_times_1(page, results):
    names = {s: f"000/time/normal/{s.lower()}" for s in SAMPLERS}
    rows = [[s, TABLE_1[s][2], results.milliseconds(n)] for s, n in names.items() if results.has(n)]
    if not rows:
        return
    page.table(["ms per iteration", "paper", "ours"], rows)
    page.say("""An iteration is 10 leapfrog steps of one chain. Ours are of another machine
        and in C; full gradients cost no more than a minibatch's here, as the sums over all data
        are known from two numbers, so that HMC is the fastest, not the slowest, of the plain
        samplers.""")


def write_table_2(page, results):
    page.heading("Table 2: logistic regression on 2000 synthetic points", 3)
    if compare(page, results, "000/logistic", TABLE_2, logistic, (1, -1), ("W0", "W1")) is None:
        return
    name = "000/logistic/separable"
    words = ""
    if results.has(name):
        x, y = logistic(results, name)
        words = f"""Taken literally (`labels: linear`) they are: then the posterior mean is
            ({x.mean():.1f}, {y.mean():.1f}) with standard deviations {x.std():.1f} and
            {y.std():.1f}, set by the prior, and an RMSE about (1, -1) measures nothing."""
    page.say(f"""The paper labels its points by a linear classifier with weights (1, -1), which
        if deterministic makes the classes separable. {words} So ours are drawn with logit x1 -
        x2. As in Table 1, the paper's RHMC is below the spread of this posterior (of its other
        data set we do not know it). Step sizes are the paper's 0.01, and 0.05 and 0.15 in the
        units of their metrics for SGR-NPHMC and RHMC. Shortened: the paper's burn-in of 10000
        iterations is 3000, of 4 chains with 5000 draws each; for the Riemannian samplers 1000
        with 2000 draws.""")


# ---- table 3 ----


def write_table_3(page, results):
    page.heading("Table 3: milliseconds per iteration, logistic regression", 3)
    sets = ("synthetic", "australian", "heart")
    rows, numpy = [], plain_numpy.seconds(results.folder)
    for sampler in SAMPLERS:
        row = [sampler]
        for data, paper in zip(sets, TABLE_3[sampler]):
            name = f"000/time/{data}/{sampler.lower()}"
            plain = numpy.get(f"000/{data}/{sampler.lower()}")
            row += [paper, results.milliseconds(name) if results.has(name) else None, 1e3 * plain if plain else None]
        rows.append(row)
    if not any(results.has(f"000/time/{data}/{sampler.lower()}") for data in sets for sampler in SAMPLERS):
        return page.leave_out()
    page.verdict(*time_claims(results, sets, numpy))
    page.table(["sampler", *[f"{data}: {w}" for data in sets for w in ("paper", "ours", "numpy")]], rows)
    page.say("""10 leapfrog steps, minibatches of 100, two rounds of the implicit solves for both
        Riemannian samplers, as in the paper; one chain on one core of another machine, the mean
        over 2000 iterations, 400 for the Riemannian samplers. SGR-NPHMC takes its metric from all
        data here, and so costs as much as RHMC. numpy is plain code of as many steps, on random
        data of this shape.""")


def time_claims(results, sets, numpy):
    """Ratios of the smallest times, from the least to the largest over the sets of data."""

    def ratios(above, under, where=sets):
        names = [[f"000/time/{data}/{s}" for s in (above, under)] for data in where]
        return [results.milliseconds(a) / results.milliseconds(b) for a, b in names if results.has(a, b)]

    em = [r for s in SAMPLERS if f"{s}-EM" in SAMPLERS for r in ratios(f"{s}-EM".lower(), s.lower())]
    beside = [
        1e3 * numpy[f"000/{data}/{s}"] / results.milliseconds(f"000/time/{data}/{s}")
        for data in sets
        for s in ("hmc", "sghmc")
        if f"000/{data}/{s}" in numpy and results.has(f"000/time/{data}/{s}")
    ]
    for words, values, paper in (
        ("RHMC takes {} times as long as HMC, the paper's {}.", ratios("rhmc", "hmc"), ("RHMC", "HMC")),
        ("EM takes {} times as long as its sampler.", em, None),
        ("Plain numpy takes {} times as long as emass.", beside, None),
    ):
        if values:
            theirs = paper and [a / b for a, b in zip(TABLE_3[paper[0]], TABLE_3[paper[1]])]
            yield words.format(span(values), paper and span(theirs))


def span(values):
    low, high = (f"{v:.0f}" if v >= 10 else f"{v:.1f}" for v in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"
