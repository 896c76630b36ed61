#!/usr/bin/env python3
"""Stan programs of posteriordb against its reference draws: means and standard deviations.

Deviations are in Monte Carlo standard errors of both sides (the references are 10,000 independent
draws); 4.5 of them are allowed, which one of the 120 numbers exceeds by chance once in 1,200 runs.
The broken twin, the same program on other data, must fail the same bound. Skipped without EMASS_DATA
or stanli (analysis/venv).
"""
import csv
import glob
import io
import json
import math
import os
import subprocess
import sys
import tempfile

EMASS = os.path.join(sys.argv[1], "emass")
BASE = os.path.join(os.environ.get("EMASS_DATA", ""), "posteriordb")
VENV = os.path.join(os.path.dirname(__file__), "..", "..", "analysis", "venv")
FOUND = glob.glob(os.path.join(VENV, "lib", "python3*", "site-packages", "stanli", "_bin", "libstanli.so"))
LIMIT = 4.5
SECONDS = int(os.environ.get("EMASS_LIMIT", "900"))
NAMES = ["eight_schools_noncentered", "kidscore_momhsiq", "logmesquite", "arK", "sblri_blr", "nes1972_nes"]


def summary(name, data, folder):
    """Rows of the summary of a run, by name."""
    config = os.path.join(folder, "run.yaml")
    draws = os.path.join(folder, "run.h5")
    with open(config, "w") as out:
        out.write(f"model: {{name: stan, program: '{BASE}/{name}.stan', data: '{data}'}}\n"
                  "run: {chains: 4, warmup: 1000, draws: 1000}\nsampler: {name: hmc}\n")
    subprocess.run([EMASS, "run", config, "--output", draws, "--overwrite", "--quiet"], check=True,
                   timeout=SECONDS)
    text = subprocess.run([EMASS, "summary", draws, "--csv"], check=True, timeout=SECONDS,
                          capture_output=True, text=True).stdout
    rows = list(csv.reader(io.StringIO(text)))
    return {row[0]: dict(zip(rows[0][1:], map(float, row[1:]))) for row in rows[1:]}


def worst(rows, name):
    """The largest deviation of a mean or an sd; the MCSE of an sd is taken as sd / sqrt(2 ESS)."""
    with open(f"{BASE}/{name}.ref.json") as file:
        reference = json.load(file)
    z, n = 0.0, reference["reference_draws"]
    for parameter, values in reference["parameters"].items():
        row = rows[parameter]
        sd = values["sd"]
        z = max(z, abs(row["mean"] - values["mean"]) / math.hypot(row["mcse_mean"], sd / math.sqrt(n)))
        ess = min(row["ess_bulk"], row["ess_tail"])
        z = max(z, abs(row["sd"] - sd) / (sd * math.sqrt(1 / (2 * ess) + 1 / (2 * n))))
    return z


def main():
    if FOUND:
        os.environ.setdefault("EMASS_STANLI", FOUND[0])
    if not os.environ.get("EMASS_STANLI") or not os.path.isdir(BASE):
        print("ok 1 - posteriors of Stan programs # SKIP no EMASS_DATA or no stanli\n1..1")
        return 0
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for name in NAMES:
            z = worst(summary(name, f"{BASE}/{name}.json", folder), name)
            results.append(z < LIMIT)
            print(f"{'ok' if z < LIMIT else 'not ok'} {len(results)} - {name}: {z:.2f} MCSE", flush=True)
        name = NAMES[0]
        with open(f"{BASE}/{name}.json") as file:
            data = json.load(file)
        data["y"] = [1.25 * y for y in data["y"]]
        other = os.path.join(folder, "other.json")
        with open(other, "w") as out:
            json.dump(data, out)
        z = worst(summary(name, other, folder), name)
        results.append(z >= LIMIT)
        print(f"{'ok' if z >= LIMIT else 'not ok'} {len(results)} - on other data it must fail: "
              f"{z:.2f} MCSE", flush=True)
    print(f"1..{len(results)}")
    return 0 if all(results) else 1


sys.exit(main())
