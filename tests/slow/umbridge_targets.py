"""The analytic benchmarks of UM-Bridge (banana, donut, funnel and Gaussian mixture, as their pages define them), served
by the package umbridge of PyPI, against quadrature. Each statistic of the draws is compared in units of its Monte Carlo
standard error. TAP; $1: the build; EMASS_SEEDS (3) seeds of each kernel."""
import json
import math
import os
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "run"))
from lib import EMASS, finish, limited, needs_packages, report, skip  # noqa: E402

needs_packages("the analytic benchmarks of UM-Bridge")
import arviz  # noqa: E402
import numpy as np  # noqa: E402

SEEDS = int(os.environ.get("EMASS_SEEDS", "3"))
LIMIT_Z = 5
SERVER = r"""
import math, sys, umbridge

def normal(x, m, s):
    return -math.log(2 * math.pi) / 2 - math.log(s) - ((x - m) / s) ** 2 / 2

def banana(x, y):  # a normal of means 0 and 4, variances 1 and correlation 1/2, at T(x) with a = 2, b = 0.2
    u, v = x / 2, 2 * y + 0.4 * (x * x + 4) - 4
    return -math.log(2 * math.pi) - math.log(0.75) / 2 - (u * u - u * v + v * v) / 1.5, None

def donut(x, y):
    r = math.hypot(x, y)
    slope = 2 / 0.033 * (2.6 / r - 1) if r else 0
    return -(r - 2.6) ** 2 / 0.033, (slope * x, slope * y)

def funnel(x, y):
    return normal(x, 0, 3) + normal(y, 0, math.exp(x / 2)), (-x / 9 - (1 - y * y * math.exp(-x)) / 2, -y * math.exp(-x))

def mixture(x, y):
    parts = [(math.exp(-((x - a) ** 2 + (y - b) ** 2) / 2 / v) / (2 * math.pi * v), a, b, v)
             for a, b, v in ((-1.5, -1.5, 0.8), (1.5, 1.5, 0.8), (-2, 2, 0.5))]
    total = sum(p for p, *_ in parts)
    return (math.log(total) if total else -math.inf,
            (sum(p * (a - x) / v for p, a, _, v in parts) / total, sum(p * (b - y) / v for p, _, b, v in parts) / total)
            if total else (0, 0))

class Target(umbridge.Model):
    def __init__(self, density, slopes):
        super().__init__(density.__name__)
        self.density, self.slopes = density, slopes

    def get_input_sizes(self, config):
        return [2]

    def get_output_sizes(self, config):
        return [1]

    def __call__(self, parameters, config):
        return [[self.density(*parameters[0])[0]]]

    def gradient(self, out_wrt, in_wrt, parameters, sens, config):
        return [sens[0] * slope for slope in self.density(*parameters[0])[1]]

    def supports_evaluate(self):
        return True

    def supports_gradient(self):
        return self.slopes

umbridge.serve_models([Target(banana, False), Target(donut, True), Target(funnel, True), Target(mixture, True)],
                      int(sys.argv[1]))
"""


def serve():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(["server/bin/python", "server.py", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(600):
        with socket.socket() as there:
            if there.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.1)
    return server, port


def average(log_density, statistics, box, n=1500):
    """Their means, by the midpoint rule."""
    (a, b), (c, d) = box
    x, y = np.meshgrid(a + (b - a) * (np.arange(n) + 0.5) / n, c + (d - c) * (np.arange(n) + 0.5) / n, indexing="ij")
    log_p = log_density(x, y)
    weight = np.exp(log_p - log_p.max())
    return {name: float((weight * f(x, y)).sum() / weight.sum()) for name, f in statistics.items()}


MOMENTS = {"E x": lambda x, y: x, "E y": lambda x, y: y, "E x^2": lambda x, y: x * x, "E y^2": lambda x, y: y * y,
           "E xy": lambda x, y: x * y}
RADIUS = {**MOMENTS, "E r": np.hypot, "E (r - 2.6)^2": lambda x, y: (np.hypot(x, y) - 2.6) ** 2}
IN_NECK = {"P(|y| < 1)": lambda x, y: (abs(y) < 1) * 1.0, "P(y > 0)": lambda x, y: (y > 0) * 1.0,
           "P(x < -4)": lambda x, y: (x < -4) * 1.0, "E x": lambda x, y: x, "E x^2": lambda x, y: x * x}


def log_mixture(parts):
    return lambda x, y: np.log(sum(np.exp(-((x - a) ** 2 + (y - b) ** 2) / 2 / v) / v for a, b, v in parts))


def funnel_truth():
    """In x and u = y exp(-x/2), which are independent."""
    of_u = {name: (lambda x, u, f=f: f(x, u * np.exp(x / 2))) for name, f in IN_NECK.items()}
    return average(lambda x, u: -x * x / 18 - u * u / 2, of_u, ((-24, 24), (-8, 8)), 4000)


THREE = ((-1.5, -1.5, 0.8), (1.5, 1.5, 0.8), (-2, 2, 0.5))
UNBENT = {**MOMENTS, "E uv": lambda x, y: x / 2 * (2 * y + 0.4 * (x * x + 4) - 4)}
BANANA = average(lambda x, y: -((x / 2) ** 2 - x / 2 * (2 * y + 0.4 * (x * x + 4) - 4) + (2 * y + 0.4 * (x * x + 4) - 4) ** 2)
                 / 1.5, UNBENT, ((-16, 16), (-50, 8)))
TARGETS = {  # statistics, truth, and a truth of another target, which the same draws must be far from
    "banana": (UNBENT, BANANA, {**BANANA, "E uv": 0.0}),
    "donut": (RADIUS, average(lambda x, y: -(np.hypot(x, y) - 2.6) ** 2 / 0.033, RADIUS, ((-5, 5), (-5, 5))),
              average(lambda x, y: -(np.hypot(x, y) - 2.6) ** 2 / 0.033 / 2, RADIUS, ((-5, 5), (-5, 5)))),
    "funnel": (IN_NECK, funnel_truth(), {**funnel_truth(), "P(x < -4)": 0.0}),
    "mixture": (MOMENTS, average(log_mixture(THREE), MOMENTS, ((-9, 9), (-9, 9))),
                average(log_mixture(THREE[:2]), MOMENTS, ((-9, 9), (-9, 9)))),
}


def distances(file, statistics, truth):
    """Of each statistic from its truth, in Monte Carlo standard errors."""
    draws = arviz.from_netcdf(file).posterior["theta"].values
    far = {}
    for name, f in statistics.items():
        value = f(draws[..., 0], draws[..., 1])
        error = float(arviz.mcse({"v": value})["v"])
        far[name] = (float(value.mean()) - truth[name]) / error if error > 0 else math.inf
    return far


def check(port, target, sampler, draws, more):
    statistics, truth, other = TARGETS[target]
    worst, squares, least, notes = 0.0, [], math.inf, []
    for seed in range(1, SEEDS + 1):
        with open("run.json", "w", encoding="utf-8") as file:
            json.dump({"model": {"name": "umbridge", "url": f"http://127.0.0.1:{port}", "server_model": target},
                       "sampler": {"name": sampler}, "run": {"chains": 4, "warmup": "auto", "draws": draws, "seed": seed}, **more}, file)
        done = limited(EMASS, "run", "run.json", "--quiet", "--overwrite", "--output", "draws.h5")
        if done.returncode:
            report(False, f"{target}, {sampler}", done.stderr)
            return
        far = distances("draws.h5", statistics, truth)
        worst = max(worst, *map(abs, far.values()))
        squares += [z * z for z in far.values()]
        least = min(least, max(map(abs, distances("draws.h5", statistics, other).values())))
        notes.append({name: round(z, 1) for name, z in far.items()})
    report(worst < LIMIT_Z, f"{target}, {sampler}, {SEEDS} seeds: at most {worst:.1f} standard errors from quadrature, "
           f"rms {math.sqrt(sum(squares) / len(squares)):.2f}", *notes)
    report(least > LIMIT_Z, f"{target}, {sampler}: another target is {least:.0f} away", *notes)


def check_cost(port):
    """A call by emass beside one by a bare socket, which has the server's own time and the system's."""
    body = json.dumps({"name": "donut", "input": [[1.5, 2.0]], "config": {}})
    request = f"POST /Evaluate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    costs = []
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", port)) as connection:
            start = time.perf_counter()
            for _ in range(1000):
                connection.sendall(request.encode())
                answer = b""
                while b"output" not in answer or not answer.endswith(b"}"):
                    answer += connection.recv(65536)
            theirs = (time.perf_counter() - start) / 1000
        with open("run.json", "w", encoding="utf-8") as file:
            json.dump({"model": {"name": "umbridge", "url": f"http://127.0.0.1:{port}", "server_model": "donut",
                                 "evaluation_log": "log.jsonl"}, "run": {"chains": 1, "warmup": 50, "draws": 100}}, file)
        if os.path.exists("log.jsonl"):
            os.remove("log.jsonl")
        limited(EMASS, "run", "run.json", "--quiet", "--overwrite", "--output", "draws.h5")
        with open("log.jsonl", encoding="utf-8") as log:
            seconds = [json.loads(line)["seconds"] for line in log if line.startswith("{")]
        costs.append((sum(seconds) / len(seconds), theirs))
    ours, theirs = min(costs, key=lambda pair: pair[0] - pair[1])
    report(ours - theirs < 1e-3, f"a call takes {1e3 * ours:.2f} ms, and by a bare socket {1e3 * theirs:.2f} ms", costs)


def installs():
    """The package, in an environment of its own."""
    return (limited(sys.executable, "-m", "venv", "server").returncode == 0 and
            limited("server/bin/pip", "install", "--quiet", "umbridge==1.2.10").returncode == 0)


with tempfile.TemporaryDirectory(prefix="emass-umbridge-") as folder:
    os.chdir(folder)
    if not installs():
        skip("the analytic benchmarks of UM-Bridge", "umbridge cannot be installed by pip")
        finish()
    with open("server.py", "w", encoding="utf-8") as file:
        file.write(SERVER)
    server, port = serve()
    try:
        check_cost(port)
        for target, sampler, draws, more in (
                ("banana", "slice", 1000, {}), ("banana", "rwm", 6000, {}), ("donut", "slice", 1000, {}), ("donut", "rwm", 6000, {}),
                ("donut", "hmc", 200, {}), ("funnel", "slice", 2500, {}), ("mixture", "slice", 400, {"temper": {"rungs": 4}}),
                ("mixture", "hmc", 400, {"temper": {"rungs": 4}})):
            check(port, target, sampler, draws, more)
    finally:
        server.terminate()
        server.wait()
finish()
