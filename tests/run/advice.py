#!/usr/bin/env python3
"""What a summary says of draws that are not to be trusted, the gravest first: of files made for it, chains
that stand still, modes of 2/2, 7/1, 1/1/2 and of exchanged labels, numbers that grow, a mode elsewhere, few and
many divergences and where they are, starts drawn anew.  TAP; $1: the build."""
import os
import re
import tempfile

import lib
from lib import report

lib.needs_packages("advice")

import h5py
import numpy as np


def write(path, posterior, stats=None, attributes=None, unwatched=()):
    """A file in ArviZ's schema; variables [chain][draw] or [chain][draw][2]."""
    with h5py.File(path, "w", track_order=True) as file:
        file.attrs.update(attributes or {})
        for group_name, variables in (("posterior", posterior), ("sample_stats", stats or {})):
            group = file.create_group(group_name, track_order=True)
            shape = next(iter(posterior.values())).shape
            for name, n in zip(("chain", "draw"), shape):
                group[name] = np.arange(n)
                group[name].make_scale(name)
            for name, x in variables.items():
                group[name] = x
                if name in unwatched:
                    group[name].attrs["watched"] = 0
                for axis, scale in enumerate(("chain", "draw")):
                    group[name].dims[axis].attach_scale(group[scale])


def said(folder, posterior, stats=None, attributes=None, ranks=1, unwatched=()):
    """The lines under the table, the first of which is the verdict."""
    path = os.path.join(folder, "file.h5")
    write(path, posterior, stats, attributes, unwatched)
    return said_of(path, ranks=ranks)


def said_of(*paths, ranks=1):
    launcher = ["mpirun", "-n", ranks] if ranks > 1 else []
    done = lib.limited(*launcher, lib.EMASS, "summary", *paths)
    lines = done.stdout.splitlines()
    first = next((i for i, line in enumerate(lines) if re.match("(not )?converged", line)), len(lines))
    return lines[first:] or [done.stderr]


def titles(lines):
    return [line.split(":")[0].split(" above")[0].split(" below")[0] for line in lines]


def normals(seed, centres, n_draw=400):
    return np.random.default_rng(seed).normal(size=(len(centres), n_draw)) + np.array(centres)[:, None]


def check_modes(folder):
    for centres, words, places in (
            ([0, 9, 0, 9], "2 modes (2 and 2 of 4 chains)", r"In x 2 are about [-0.][\d.e-]* and 2 are about (9|8\.9)"),
            ([-7] * 7 + [6], "2 modes (7 and 1 of 8 chains)", r"In x 7 are about -(7|6\.9|7\.0)\d* and 1 is about [56]"),
            ([0, 9, 18, 18], "3 modes (2, 1 and 1 of 4 chains)", r"In x 1 is about .*, 1 is about .* and 2 are about 1[78]")):
        lines = said(folder, {"x": normals(1, centres), "y": normals(2, [0] * len(centres))})
        report(lines[0].startswith(f"not converged: {words}, worst R-hat") and lines[1].startswith(f"Modes: the chains are in {words}. ")
               and re.search(places, lines[1]) and "weights of the modes are not known" in lines[1]
               and not any("Run longer" in line for line in lines), words, *lines)
    circle = [2 * np.pi * (c % 8) / 8 for c in range(16)]
    draws = {"x": normals(1, [20 * np.cos(a) for a in circle]), "y": normals(2, [20 * np.sin(a) for a in circle])}
    lines = said(folder, draws)
    report(lines[0].startswith("not converged: 8 modes (2, 2, 2, 2, 2, 2, 2 and 2 of 16 chains)"), "eight on a circle", *lines)
    report(said(folder, draws, ranks=3) == lines, "and on three ranks", *lines)
    shift = np.array([0, 9, 0, 9])
    both = np.stack([normals(1, shift), normals(2, 9 - shift)], -1)
    path = os.path.join(folder, "labels.h5")
    write(path, {"mu": both})
    lines = lib.limited(lib.EMASS, "summary", path).stdout
    report(re.search(r"mu\[[01]\] and mu\[[01]\] have exchanged their values", lines), "exchanged labels", lines)
    lp = normals(3, [-10, -10, -60, -10])
    lines = said(folder, {"x": normals(1, [0, 0, 9, 0])}, {"lp": lp})
    report(re.search(r"The log density at x about (9|8\.9)\d* is (49|50)\.?\d* lower", lines[1]), "a mode of low density", *lines)
    lines = said(folder, {"x": np.cumsum(normals(5, [0] * 4), axis=1)})
    report(titles(lines)[1] == "R-hat" and "Run longer, warmup included" in lines[1] and "mode" not in lines[0],
           "random walks are no modes", *lines)


def check_what_cannot_be(folder):
    """Advice for samplers of latent variables and of minibatches, and for weights of networks."""
    no = {"can_be_tempered": 0}
    for attributes, has in (({}, True), (no, False)):
        lines = said(folder, {"x": normals(1, [0, 9, 0, 9])}, None, attributes)
        text = " ".join(lines)
        report(("temper: {}" in text) == has and ("reparameterise" in text) == has and ("Tempering is not possible" in text) != has,
               f"modes where temper is {'possible' if has else 'refused'}", *lines)
        lines = said(folder, {"x": np.cumsum(normals(5, [0] * 4), axis=1)}, None, attributes)
        report("Run longer" in " ".join(lines) and ("reparameterise" in " ".join(lines)) == has, "and no agreement", *lines)
    draws = {"y": normals(2, [0] * 4, 1000), "weights": normals(1, [0, 9, 0, 9], 1000), "later": normals(3, [0, 0, 0, 5], 1000)}
    lines = said(folder, draws, unwatched=["weights"])
    report(lines[0].startswith("converged: ") and len(lines) == 1, "variables that are not watched give no advice", *lines)
    lines = said(folder, draws, unwatched=["weights"], ranks=2)
    report(lines[0].startswith("converged: ") and len(lines) == 1, "nor on two ranks", *lines)
    draws["y"] = np.cumsum(draws["y"], axis=1)
    lines = said(folder, draws, unwatched=["weights"])
    report("R-hat above 1.01: 1 of 1 rows" in " ".join(lines), "rows that are watched are counted", *lines)


def check_growth(folder):
    grows = normals(1, [0] * 4)
    grows[1] += 0.5 * np.arange(400)
    for name, x in (("grows", grows), ("is enormous", 1e12 * np.cumsum(normals(1, [0] * 4), axis=1))):
        lines = said(folder, {"x": x, "y": normals(2, [0] * 4)})
        report("1 number may be improper" in lines[0] and lines[1].startswith("Improper: the draws of 1 of 2 rows")
               and "(x, mean" in lines[1] and "check that every parameter has a prior" in lines[1], f"a number that {name}", *lines)


def check_sampler(folder):
    calm = {"x": normals(1, [0] * 4, 1000), "tau": np.exp(normals(2, [0] * 4, 1000))}
    lowest = np.zeros((4, 1000), "i1")
    lowest.flat[np.argsort(calm["tau"], axis=None)[:3]] = 1
    rate = {"acceptance_rate": np.full((4, 1000), 0.8)}
    lines = said(folder, calm, rate | {"diverging": lowest})
    report(lines[0].startswith("converged with warnings: ") and "3 divergences (limit 4)" in lines[0] and len(lines) == 2
           and re.search(r"Divergences: 3 of 4000 draws .* (closest together in|cluster where) tau.*So few are only a warning", lines[1]),
           "three divergences of 4000 draws are a warning, with their place", *lines)
    lowest.flat[np.argsort(calm["tau"], axis=None)[:40]] = 1
    lines = said(folder, calm, rate | {"diverging": lowest})
    report(lines[0].startswith("not converged: ") and "40 divergences (limit 4)" in lines[0]
           and re.search(r"They cluster where tau is 0\.\d+ to 0\.\d+, a range with 0?\.?\d+ % of all draws", lines[1]),
           "more are not converged, and where they gather", *lines)
    lines = said(folder, calm, rate | {"diverging": lowest, "visit": np.arange(4000, dtype=float).reshape(4, 1000)})
    report(lines[0].startswith("converged with warnings: ") and "40 divergences (limit 200)" in lines[0]
           and "whose non-centred form warmup did not find" in lines[1], "of tempered chains they are a warning", *lines)
    many = lowest.copy()
    many.flat[np.argsort(calm["tau"], axis=None)[:201]] = 1
    lines = said(folder, calm, rate | {"diverging": many, "visit": np.arange(4000, dtype=float).reshape(4, 1000)})
    report(lines[0].startswith("not converged: ") and "201 divergences (limit 200)" in lines[0], "up to one in 20 iterations", *lines)
    error = np.where(lowest, np.inf, 0.1)
    for name in "energy_error", "max_energy_error":
        lines = said(folder, calm, rate | {"diverging": lowest, name: error})
        report("In 40 of these trajectories the log density was not finite. A parameter may have a bound" in lines[1]
               and "bends sharply" not in lines[1], f"a bound that is not declared, by {name}", *lines)
    error.flat[np.argsort(calm["tau"], axis=None)[:5]] = 2000
    lines = said(folder, calm, rate | {"diverging": lowest, "energy_error": error})
    report("not finite" not in lines[1] and "bends sharply" in lines[1], "35 of 40 are no reason to say so", *lines)
    energy = np.cumsum(normals(3, [0] * 4, 1000), axis=1)
    saturated = {"reached_max_treedepth": np.ones((4, 1000), "i1")}
    lines = said(folder, calm, rate | saturated | {"energy": energy})
    report(lines[0].startswith("converged with warnings: ") and "4000 saturated trees" in lines[0]
           and titles(lines)[1:] == ["E-BFMI", "Saturated tree depth"], "low E-BFMI and saturated trees are warnings", *lines)
    still = {"x": normals(1, [0, 0, 9, 9], 1000)}
    still["x"][0, 100:500] = still["x"][0, 100]
    everything = rate | saturated | {"energy": energy, "diverging": lowest, "lp": -(still["x"] ** 2) / 2}
    lines = said(folder, still, everything, {"redrawn_starts": 2, "reinitialised_chains": 1})
    report(titles(lines)[1:] == ["Stood still", "Modes", "R-hat", "ESS", "Divergences", "E-BFMI", "Reinitialised", "Starts drawn anew",
                                 "Saturated tree depth"], "the gravest first", *lines)


def check_tails(folder, seed):
    """A number without a mean, and as twins those whose mean exists: exponential, and t with 4 degrees of freedom."""
    random = np.random.default_rng(seed)
    heavy = {"x": normals(seed, [0] * 4, 1000), "tau": np.abs(random.standard_cauchy((4, 1000)))}
    lines = said(folder, heavy)
    report(titles(lines)[1:] == ["Heavy tails"] and "1 of 2 rows are" in lines[1] and "(tau: Pareto shape" in lines[1]
           and lines[0].startswith("converged: "), f"a number without a mean {seed}", *lines)
    light = {"x": random.exponential(size=(4, 1000)), "y": random.standard_t(4, (4, 1000))}
    lines = said(folder, light)
    report(len(lines) == 1, f"numbers with a mean {seed}", *lines)


def check_thinned(folder, seed):
    """Draws of which thinning kept one in eight: the verdict counts all iterations, also that of several files and of a merged one."""
    stats = {"acceptance_rate": np.full((4, 500), 0.8), "energy": normals(seed + 1, [0] * 4, 500)}
    path = [os.path.join(folder, f"{name}.h5") for name in ("warns", "calm", "more", "merged")]
    all_of = {"complete": 1, "iterations": 16000, "thinning": 8}
    for k, (name, divergences, e_bfmi) in enumerate(zip(path, (2, 0, 17), (0.05, 0.9, 0.9))):
        calm = {"x": normals(10 * seed + k, [0] * 4, 500)}
        write(name, calm, stats, all_of | {"divergences": divergences, "smallest_e_bfmi": e_bfmi})
    lines = said_of(path[0])
    report(lines[0].startswith("converged with warnings: ") and "smallest E-BFMI 0.05" in lines[0] and "2 divergences (limit 16)" in lines[0]
           and titles(lines)[1:] == ["Divergences", "E-BFMI"] and lines[1].startswith("Divergences: 2 of 16000 draws")
           and "So few are only a warning" in lines[1] and "(lowest 0.05)" in lines[2], f"warnings about draws that are not kept {seed}", *lines)
    lines = said_of(path[1])
    report(lines[0].startswith("converged: ") and len(lines) == 1, f"none {seed}", *lines)
    lines = said_of(*path[:2])
    report(lines[0].startswith("converged with warnings: ") and "2 divergences (limit 32)" in lines[0], f"of two files {seed}", *lines)
    lines = said_of(path[1], path[2])
    report(lines[0].startswith("converged with warnings: ") and "17 divergences (limit 32)" in lines[0], f"in proportion {seed}", *lines)
    lines = said_of(path[2])
    report(lines[0].startswith("not converged: ") and "17 divergences (limit 16)" in lines[0] and "draws miss this region" in lines[1],
           f"too many {seed}", *lines)
    lib.limited(lib.EMASS, "merge", path[3], *path[:2], "--overwrite")
    lines = said_of(path[3])
    report(lines[0].startswith("converged with warnings: ") and "smallest E-BFMI 0.05" in lines[0] and "2 divergences (limit 32)" in lines[0],
           f"of a merged file {seed}", *lines)
    calm["x"][1, 100:123] = calm["x"][1, 100]
    write(path[0], calm, stats | {"lp": -(calm["x"] ** 2) / 2}, all_of | {"divergences": 0, "smallest_e_bfmi": 0.9})
    lines = said_of(path[0])
    report("1 chain stood still (up to 176 draws)" in lines[0] and lines[1].startswith("Stood still: 1 of 4"),
           f"a chain stood still for 22 of the draws that are kept {seed}", *lines)


def check_warmup(folder):
    calm = {"x": normals(1, [0] * 4, 1000)}
    lines = said(folder, calm, None, {"redrawn_starts": 0, "reinitialised_chains": 0})
    report(lines[0].startswith("converged: ") and len(lines) == 1, "nothing to say", *lines)
    lines = said(folder, calm, None, {"redrawn_starts": 3})
    report(lines[0].startswith("converged: ") and lines[1].startswith("Starts drawn anew: 3,") and len(lines) == 2,
           "starts drawn anew are said and are no warning", *lines)
    lines = said(folder, calm, None, {"rescued_chains": 1})
    report(lines[1].startswith("Reinitialised: in warmup 1 chain could not move"), "a file of an earlier version", *lines)
    lines = said(folder, calm, None, {"mode_search_log_mass": np.log(0.03)})
    report(lines[0].startswith("converged with warnings: a mode of 0.03 times the mass that no draw is near to, ")
           and re.match(r"A mode elsewhere: .* about 0.03 times the mass", lines[1]) and "larger part" not in lines[1],
           "a mode elsewhere of less mass is a warning", *lines)
    lines = said(folder, calm, None, {"mode_search_log_mass": np.log(30.0)})
    report(lines[0].startswith("not converged: a mode of 30 times the mass") and "miss the larger part" in lines[1],
           "of more mass: not converged", *lines)


with tempfile.TemporaryDirectory(prefix="emass-advice-") as work:
    check_modes(work)
    check_what_cannot_be(work)
    check_growth(work)
    check_sampler(work)
    for seed in 1, 2, 3:
        check_thinned(work, seed)
    for seed in range(1, 6):
        check_tails(work, seed)
    check_warmup(work)
lib.finish()
