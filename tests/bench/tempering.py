#!/usr/bin/env python3
"""Tempered runs of normal mixtures whose weights and log evidence (0) are known: make bench-tempering.

    tests/bench/tempering.py EMASS [--seeds N] [--set KEY=VALUE ...] [TARGET ...]

A row for each target: the error of the worst weight and its root mean square over seeds, log evidence with z scores by
its own standard error, the root mean square over seeds of the z scores of the mean of the first coordinate by the
summary's standard error (1 where errors are right) and its ESS, round trips a ladder, barriers of both legs, rungs, how many runs said converged and converged
with warnings, and how many of each have a weight that is off by more than 0.1."""
import argparse
import csv
import math
import os
import subprocess
import tempfile

import h5py
import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CIRCLE = [[10 * math.cos(math.pi * k / 4), 10 * math.sin(math.pi * k / 4)] for k in range(8)]
GRID = [[10 * i, 10 * j] for i in range(-2, 3) for j in range(-2, 3)]


def aside(d):
    """A point at distance 40 in a random direction."""
    direction = np.random.default_rng(d).normal(size=d)
    return (40 * direction / np.linalg.norm(direction)).tolist()


TARGETS = {  # weights, means, standard deviations
    "asym": ([.5, .5], [[-7], [6]], [1, 1]),
    "asym9": ([.9, .1], [[-7], [6]], [1, 1]),
    "asym1": ([.1, .9], [[-7], [6]], [1, 1]),
    "ring8": ([1 / 8] * 8, CIRCLE, [1] * 8),
    "grid25": ([1 / 25] * 25, GRID, [1] * 25),
    "two5": ([.5, .5], [[-10] * 5, [10] * 5], [1, 1]),
    "two50": ([.5, .5], [[-2] * 50, [2] * 50], [1, 1]),
    "far": ([.5, .5], [[-100], [100]], [1, 1]),
    "rare": ([.02, .3, .68], [[-40], [0], [25]], [1, 2, 1]),
    "small3": ([.02, .98], [[-8] * 3, [4] * 3], [1, .5]),
    "narrow20": ([.3, .7], [[-3] * 20, [3] * 20], [1, .7]),
    "apart3": ([.02, .28, .7], [[-120], [0], [80]], [1, 3, 1.5]),
    "narrow10": ([.3, .7], [[0] * 10, [9, -7, 5, -9, 3, 6, -5, 8, -3, 2]], [1, .5]),
    "aside20": ([.3, .7], [[0] * 20, aside(20)], [1, .7]),
    "aside50": ([.3, .7], [[0] * 50, aside(50)], [1, .9]),
    "wide10": ([.7, .3], [[-5] * 10, [5] * 10], [1, 3]),
    "hidden10": ([.7, .3], [[-5] * 10, [5] * 10], [.3, 3]),
}
MODEL = """
#include <emass/plugin.h>
#include <math.h>
enum { D = %d, K = %d };
static const double weight[] = {%s}, at[] = {%s}, sd[] = {%s};
static em_status density(const void *given, const double *theta, double *log_p, double *gradient)
{
    double term[K], most = -INFINITY, sum = 0;
    (void)given;
    for (int k = 0; k < K; k++) {
        term[k] = log(weight[k]) - D * (0.918938533204672742 + log(sd[k]));
        for (int i = 0; i < D; i++)
            term[k] -= pow((theta[i] - at[k * D + i]) / sd[k], 2) / 2;
        most = fmax(most, term[k]);
    }
    for (int k = 0; k < K; k++)
        sum += exp(term[k] - most);
    *log_p += most + log(sum);
    for (int k = 0; k < K; k++)
        for (int i = 0; i < D; i++)
            gradient[i] -= exp(term[k] - most) / sum * (theta[i] - at[k * D + i]) / (sd[k] * sd[k]);
    return EM_OK;
}
static const em_variable x = {.name = "x", .n_axes = 1, .shape = {D}};
EMASS_PLUGIN({.name = "mixture", .n_parameter = 1, .parameter = &x, .log_density_gradient = density});
"""


def text(value):
    return value.decode() if isinstance(value, bytes) else value


def build(weight, at, sd):
    numbers = [", ".join(map(repr, np.ravel(v).astype(float).tolist())) for v in (weight, at, sd)]
    with open("mixture.c", "w") as out:
        out.write(MODEL % (len(at[0]), len(weight), *numbers))
    subprocess.run(["cc", "-O2", "-std=c17", "-shared", "-fPIC", f"-I{ROOT}/include", "mixture.c", "-o", "mixture.so",
                    "-lm"], check=True)
    with open("run.yaml", "w") as out:
        out.write("model: {name: mixture, library: ./mixture.so}\ntemper: {}\nrun: {chains: 4, draws: 1000}\n")


def score(emass, path, truth):
    """z of the mean of the first coordinate, which follows from the weights of modes, and its ESS."""
    done = subprocess.run([emass, "summary", path, "--csv"], check=True, capture_output=True, text=True)
    row = next(csv.DictReader(done.stdout.splitlines()))
    return (float(row["mean"]) - truth) / float(row["mcse_mean"]), float(row["ess_bulk"])


def look(path, weight, at):
    with h5py.File(path) as file:
        draws, attributes, group = file["posterior/x"][:], file.attrs, file["tempering"]
        nearest = ((draws[..., None, :] - np.array(at))**2).sum(-1).argmin(-1)
        off = [(nearest == k).mean() - w for k, w in enumerate(weight)]
        return {
            "off": max(off, key=abs), "value": attributes["log_evidence"],
            "z": attributes["log_evidence"] / attributes["log_evidence_error"],
            "trips": group["ladder_round_trips"][:].mean(), "barrier": group["barrier"][:],
            "rungs": len(group["beta"]),
            "word": text(attributes["verdict"]).split(":")[0],
        }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("emass", type=os.path.abspath)
    parser.add_argument("target", nargs="*")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--set", action="append", default=[])
    given = parser.parse_intermixed_args()
    settings = [part for setting in given.set for part in ("--set", setting)]
    print("target   | worst weight off | rms | log evidence | rms z | rms z of the mean | ESS | round trips | barriers | rungs | converged, with warnings | falsely")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name in given.target or TARGETS:
            weight, at, sd = TARGETS[name]
            build(weight, at, sd)
            rows = []
            for seed in range(1, given.seeds + 1):
                subprocess.run([given.emass, "run", "run.yaml", "--overwrite", "--quiet", "--seed", str(seed), *settings],
                               check=True)
                rows.append(look("run.h5", weight, at))
                rows[-1]["mean"], rows[-1]["ess"] = score(given.emass, "run.h5", np.dot(weight, at)[0])
            off, z, mean = (np.array([row[key] for row in rows]) for key in ("off", "z", "mean"))
            said = [np.array([row["word"] == word for row in rows]) for word in ("converged", "converged with warnings")]
            barrier = np.mean([row["barrier"] for row in rows], axis=0)
            print(f"{name:8s} | {max(off, key=abs):+.3f} | {(off**2).mean()**.5:.3f} | "
                  f"{np.mean([row['value'] for row in rows]):+.3f} | {(z**2).mean()**.5:.2f} | "
                  f"{(mean**2).mean()**.5:.2f} | {np.mean([row['ess'] for row in rows]):.0f} | "
                  f"{np.mean([row['trips'] for row in rows]):.0f} | {barrier[0]:.1f}, {barrier[1]:.1f} | "
                  f"{np.mean([row['rungs'] for row in rows]):.0f} | {said[0].sum()}, {said[1].sum()} | "
                  f"{', '.join(str((s & (abs(off) > 0.1)).sum()) for s in said)}", flush=True)
        os.chdir("/")


main()
