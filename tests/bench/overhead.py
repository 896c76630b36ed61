#!/usr/bin/env python3
"""What a run spends outside of its model, on one rank.

    tests/bench/overhead.py EMASS [--beside EMASS] [--runs 3] [--draws N] [--only NAME]...

Each program is run with nothing but its data (--draws: for so many draws, else until done), and the calls of the
interpreter are timed by a library in between (overhead/stanli_clock.c). EMASS_STANLI names libstanli.so. Programs are
four of the script's own, and the posteriors of EMASS_DATA/posteriordb, where that is set. One row each, medians over --runs:

    seconds     by the clock, and of the processor (user and system)
    model       seconds of the processor in gradients and in what is reported of draws
    over        seconds of the processor outside of the model
    start, end  seconds of the processor from the start of the program to the first gradient, and from the last
                call of the model to the end

With --beside the two programs take turns, and each model has two rows.
"""

import argparse
import csv
import json
import lzma
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

OWN = {
    "tiny": ("parameters { vector[2] x; } model { x ~ std_normal(); }", {}),
    "thousand": ("parameters { vector[1000] x; } model { x ~ std_normal(); }", {}),
    "wide": ("""data { int n; vector[n] t; vector[n] y; }
parameters { real a; real b; real<lower=0> s; }
transformed parameters { vector[n] mu = a + b * t; }
model { a ~ normal(0, 5); b ~ normal(0, 5); s ~ normal(0, 2); y ~ normal(mu, s); }""",
             {"n": 2000, "t": [i / 1000 - 1 for i in range(2000)],
              "y": [(i * 7919 % 2000) / 1000 - 1 for i in range(2000)]}),
    "copies": ("""parameters { vector[3] x; } transformed parameters { matrix[3, 400] m = rep_matrix(x, 400); }
model { x ~ std_normal(); }""", {}),
}
POSTERIORS = ["eight_schools_noncentered", "arK", "Rate_5_data-Rate_5_model", "surgical_data-surgical_model",
              "Rate_2_data-Rate_2_model", "Rate_3_data-Rate_3_model", "Rate_4_data-Rate_4_model",
              "Survey_data-Survey_model", "Mb_data-Mb_model", "Mth_data-Mth_model", "Mtbh_data-Mtbh_model",
              "GLMM_data-GLMM1_model", "radon_all-radon_variable_intercept_slope_noncentered"]


def programs(folder, data_folder, only):
    """(name, program, data) of all that are to be run; what has no file yet is written to `folder`."""
    for name, (text, data) in OWN.items():
        program, values = folder / f"{name}.stan", folder / f"{name}.json"
        program.write_text(text)
        values.write_text(json.dumps(data))
        yield name, program, values
    if not data_folder:
        return
    posteriordb = pathlib.Path(data_folder, "posteriordb")
    more = posteriordb / "more"
    table = {row["posterior"]: row for row in csv.DictReader((more / "posteriors.csv").open())}
    for name in dict.fromkeys(POSTERIORS + only):
        if (posteriordb / f"{name}.stan").exists():
            yield name, posteriordb / f"{name}.stan", posteriordb / f"{name}.json"
        elif name in table:
            values = folder / f"{name}.json"
            with lzma.open(more / "data" / f"{table[name]['data']}.json.xz") as packed:
                values.write_bytes(packed.read())
            yield name, more / "models" / f"{table[name]['model']}.stan", values


def build_clock(folder):
    clock = folder / "libstanli.so"
    source = pathlib.Path(__file__).parent / "overhead" / "stanli_clock.c"
    subprocess.run([os.environ.get("CC", "cc"), "-O2", "-shared", "-fPIC", "-fvisibility=hidden", source, "-o", clock,
                    "-ldl"], check=True)
    return clock


def run_once(emass, name, program, data, folder, clock, draws):
    config, line = folder / f"{name}.yaml", folder / "line"
    config.write_text(f"model: {{name: stan, program: {program}, data: {data}}}\n"
                      + (f"run: {{draws: {draws}}}\n" if draws else ""))
    line.write_text("")
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    environment = dict(os.environ, EMASS_STANLI=str(clock), EMASS_CLOCK_OF=os.environ["EMASS_STANLI"],
                       EMASS_CLOCK_TO=str(line), EMASS_CLOCK_START=repr(start))
    subprocess.run([emass, "run", config, "--output", folder / "out.h5", "--overwrite", "--quiet", "--seed", "1"],
                   check=True, env=environment, stderr=subprocess.DEVNULL)
    seconds, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    start_clock, start_processor, _, end, model, gradients = map(float, line.read_text().split())
    return {"seconds": seconds, "processor": processor, "model": model, "over": processor - model,
            "start": start_processor, "start by the clock": start_clock, "end": end, "gradients": gradients}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("emass")
    parser.add_argument("--beside")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--draws", type=int)
    parser.add_argument("--only", action="append", default=[])
    options = parser.parse_args()
    if not os.environ.get("EMASS_STANLI"):
        sys.exit("overhead.py: EMASS_STANLI is not set, expected libstanli.so")
    binaries = [os.path.abspath(path) for path in (options.beside, options.emass) if path]
    print("| model | gradients | seconds | of the processor | model | share | over | start by the clock | start | end |")
    print("| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: |")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        clock = build_clock(folder)
        for model, program, data in programs(folder, os.environ.get("EMASS_DATA"), options.only):
            if options.only and model not in options.only:
                continue
            runs = [[] for _ in binaries]
            for _ in range(options.runs):
                for binary, found in zip(binaries, runs):
                    found.append(run_once(binary, model, program, data, folder, clock, options.draws))
            for found in runs:
                m = {key: statistics.median(run[key] for run in found) for key in found[0]}
                print(f"| {model} | {m['gradients']:.0f} | {m['seconds']:.2f} | {m['processor']:.2f} | {m['model']:.3f} | "
                      f"{m['model'] / m['processor']:.0%} | {m['over']:.2f} | {m['start by the clock']:.2f} | "
                      f"{m['start']:.3f} | {m['end']:.3f} |", flush=True)


if __name__ == "__main__":
    main()
