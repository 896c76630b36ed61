#!/usr/bin/env python3
"""A run of a slow simulator stops within the half minute that Slurm leaves between SIGTERM and SIGKILL. TAP; $1: the
build."""
import os
import signal
import subprocess
import tempfile
import time

import lib
from lib import report

SOLVE = """#!/usr/bin/env python3
import json, sys, time
for line in sys.stdin:
    time.sleep(0.1)
    x = json.loads(line)["parameters"]["x"]
    print(json.dumps({"log_density": -x * x / 2}), flush=True)
"""
RUN = """
model: {name: process, command: [./solve.py], parameters: {x: {normal: [0, 1]}}}
run: {chains: 1, warmup: 2, draws: 2000}
output: {file: run.h5}
"""

with tempfile.TemporaryDirectory(prefix="emass-simulator-stop-") as work:
    os.chdir(work)
    with open("solve.py", "w") as file:
        file.write(SOLVE)
    os.chmod("solve.py", 0o755)
    with open("run.yaml", "w") as file:
        file.write(RUN)
    child = subprocess.Popen([lib.EMASS, "run", "run.yaml", "--quiet"], stderr=subprocess.PIPE, text=True)
    time.sleep(8)
    child.send_signal(signal.SIGTERM)
    start = time.monotonic()
    try:
        said = child.communicate(timeout=int(lib.LIMIT))[1]
    except subprocess.TimeoutExpired:
        child.kill()
        said = child.communicate()[1]
    took = time.monotonic() - start
    report(took < 28 and "with a checkpoint" in said, "a signal stops it in less than 28 seconds", took, said)
lib.finish()
