#!/usr/bin/env python3
"""Simulators: the examples of the guide, processes and servers that fail in every way, the same bytes on any
number of ranks and after a stop, and what a call costs."""
import contextlib
import csv
import http.server
import inspect
import io
import json
import math
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import BUILD, EMASS, ROOT, finish, limited, report, skip  # noqa: E402

os.environ["SOURCE_DATE_EPOCH"] = "0"
scratch = tempfile.TemporaryDirectory()
os.chdir(scratch.name)
with open(os.path.join(ROOT, "analysis/guide/simulators.md"), encoding="utf-8") as page:
    guide = page.read()


def write(name, text, mode=0o644):
    with open(name, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(name, mode)


def config(name, model, rest="run: {chains: 4, warmup: 100, draws: 100}"):
    write(name, f"model: {json.dumps(model)}\n{rest}\n")


def run(name, output, *settings, ranks=1, resume=False):
    words = [word for setting in settings for word in ("--set", setting)]
    launch = ["mpirun", "-n", str(ranks)] if ranks > 1 else []
    return limited(*launch, EMASS, "run", name, "--progress", "none", "--output", output,
                   "--resume" if resume else "--overwrite", *words)


def means(file):
    done = limited(EMASS, "summary", file, "--csv")
    rows = list(csv.reader(io.StringIO(done.stdout)))
    return {row[0]: (float(row[1]), float(row[2]), float(row[3])) for row in rows[1:] if len(row) > 3}


def content(file):
    with open(file, "rb") as stream:
        return stream.read()


def failed(file):
    """The failed evaluations that a file lists."""
    return [json.loads(text) for text in sorted(set(re.findall(rb'\{"chain": \d+, "position": \[.*?\], "why": ".*?"\}',
                                                   content(file))))]


# ---- the examples of the guide ----

def block(language, number):
    return re.findall(rf"^```{language}\n(.*?)^```$", guide, re.S | re.M)[number]


write("solve.py", block("python", 0), 0o755)
write("solve.c", block("c", 0))
write("guide.yaml", block("yaml", 1))
Y = [2.1, 3.4, 1.9, 4.0, 2.8, 3.1, 2.2]


def truth():
    """Posterior means of mu and sigma, by the midpoint rule."""
    total = mu = sigma = 0.0
    for i in range(400):
        for k in range(400):
            m, s = -2 + 10 * (i + 0.5) / 400, 8 * (k + 0.5) / 400
            w = math.exp(sum(-((v - m) / s) ** 2 / 2 - math.log(s) for v in Y) - (m / 10) ** 2 / 2 - (s / 5) ** 2 / 2)
            total, mu, sigma = total + w, mu + w * m, sigma + w * s
    return {"mu": mu / total, "sigma": sigma / total}


def near(file, expected):
    found = means(file)
    return all(abs(found[name][0] - value) < 5 * found[name][1] for name, value in expected.items()), found


exact = truth()
done = run("guide.yaml", "python.h5", "run.draws=300", "run.warmup=100")
fine, found = near("python.h5", exact) if done.returncode == 0 else (False, done.stderr)
report(fine, "the program in Python of the guide samples its posterior", found, exact)
built = subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", "solve.c", "-lm", "-o", "solve"], capture_output=True,
                       text=True, check=False)
done = run("guide.yaml", "c.h5", "model.command=[./solve]", "run.draws=1000", "run.warmup=200")
fine, found = near("c.h5", exact) if done.returncode == 0 else (False, built.stderr + done.stderr)
report(fine, "so does the one in C", found, exact)
done = limited(EMASS, "check", "guide.yaml")
report(done.returncode == 0 and "sigma ~ half_normal(5)" in done.stdout and "gradient   none" in done.stdout,
       "emass check prints the priors", done.stdout[-800:], done.stderr)
done = run("guide.yaml", "rwm.h5", "model.command=[./solve]", "sampler.name=rwm", "run.draws=2000", "run.warmup=300")
fine, found = near("rwm.h5", exact) if done.returncode == 0 else (False, done.stderr)
report(fine, "rwm samples it too", found, exact)

# ---- the densities of UM-Bridge's benchmarks, beside quadrature ----

write("densities.c", r"""
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static double normal(double x, double s) { return -log(s) - x * x / s / s / 2; }
static double hill(double x, double y, double a, double b, double s)
{
    return exp(2 * normal(hypot(x - a, y - b) / sqrt(2), s));
}
double density(const char *name, double x, double y)
{
    const double r = hypot(x, y);
    switch (name[0]) {
    case 'b': return normal(x / 2, 1) + normal(2 * y + 0.4 * (x * x + 4) - 4, sqrt(0.5));
    case 'd': return -(r - 2.6) * (r - 2.6) / 0.033;
    case 'f': return normal(x, 3) + normal(y, exp(x / 2));
    default: return log(hill(x, y, -1.5, -1.5, 0.8) + hill(x, y, 1.5, 1.5, 0.8) + hill(x, y, -2, 2, 0.5));
    }
}
int main(int argc, char **argv)
{
    static char line[1 << 16];
    if (argc > 5) { /* mean and sd of x and y, by the midpoint rule */
        double s[5] = {0};
        const double a = atof(argv[2]), b = atof(argv[3]), c = atof(argv[4]), d = atof(argv[5]);
        for (int i = 0; i < 2000; i++)
            for (int k = 0; k < 2000; k++) {
                const double x = a + (b - a) * (i + 0.5) / 2000, y = c + (d - c) * (k + 0.5) / 2000;
                const double p = exp(density(argv[1], x, y));
                s[0] += p, s[1] += p * x, s[2] += p * x * x, s[3] += p * y, s[4] += p * y * y;
            }
        for (int i = 1; i < 5; i++) s[i] /= s[0];
        return printf("%.6f %.6f %.6f %.6f\n", s[1], sqrt(s[2] - s[1] * s[1]), s[3], sqrt(s[4] - s[3] * s[3])) < 0;
    }
    while (fgets(line, sizeof line, stdin)) {
        char *at = strchr(strstr(line, "\"x\":"), '[') + 1;
        const double x = strtod(at, &at), y = strtod(at + 1, NULL);
        printf("{\"log_density\": %.17g}\n", density(argv[1], x, y));
        fflush(stdout);
    }
    return 0;
}
""")
subprocess.run(["cc", "-O2", "densities.c", "-lm", "-o", "densities"], check=True)


def right(file, mean, sd):
    """A mean and a standard deviation, each within 5 standard errors."""
    found = list(means(file).values())
    return all(abs(m - x) < 5 * e and abs(s - y) < 5 * e for (m, e, s), x, y in zip(found, mean, sd)), found


for name, box, settings in (("banana", "-12 12 -20 6", ["run.draws=2000"]), ("donut", "-5 5 -5 5", ["run.draws=2000"]),
                            ("mixture", "-6 6 -6 6", ["run.draws=500", "temper.rungs=5"]),
                            ("mixture", "-6 6 -6 6", ["run.draws=1000", "temper.rungs=5", "sampler.name=rwm"])):
    exact_of = subprocess.run(["./densities", name, *box.split()], capture_output=True, text=True, check=True).stdout.split()
    a, b, c, d = map(float, exact_of)
    config("density.yaml", {"name": "process", "command": ["./densities", name], "parameters": {"x": {"size": 2}}},
           "run: {chains: 4, warmup: 300}")
    done = run("density.yaml", "density.h5", *settings)
    fine, found = right("density.h5", (a, c), (b, d)) if done.returncode == 0 else (False, done.stderr)
    report(fine, f"{name}, {' '.join(settings)}: means and standard deviations", found, exact_of)

config("density.yaml", {"name": "process", "command": ["./densities", "mixture"], "parameters": {"x": {"size": 2}},
                        "evaluation_log": "evaluations.jsonl"}, "run: {chains: 2, warmup: 30, draws: 10}")
done = run("density.yaml", "density.h5", "temper.rungs=3")
with open("evaluations.jsonl") as file:
    count = len(file.readlines())
report(done.returncode == 0 and 240 <= count < 10000,
       "tempered: no evaluations for a search of modes, which needs gradients", count, done.stderr)

# x of the funnel is normal with standard deviation 3; y has a neck where x is small.
config("density.yaml", {"name": "process", "command": ["./densities", "funnel"], "parameters": {"x": {"size": 2}}},
       "run: {chains: 4, warmup: 300, draws: 2000}")
done = run("density.yaml", "density.h5")
found = list(means("density.h5").values()) if done.returncode == 0 else [(9, 0, 0)]
report(abs(found[0][0]) < 5 * found[0][1] and abs(found[0][2] - 3) < 5 * found[0][1],
       "funnel: mean and standard deviation of its x", found, done.stderr)

# ---- a likelihood on several ranks ----

write("waves.c", block("c", 1))
built = subprocess.run(["mpicc", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-I" + os.path.join(ROOT, "include"),
                        "waves.c", "-o", "waves.so", "-lm"], capture_output=True, text=True, check=False)
config("waves.yaml", {"name": "waves", "library": "./waves.so"}, "run: {chains: 4, warmup: 40, draws: 50}")
alone = run("waves.yaml", "alone.h5")
two = run("waves.yaml", "two.h5", "run.ranks_per_chain=2", ranks=2)
four = run("waves.yaml", "four.h5", "run.ranks_per_chain=2", ranks=4)
report(alone.returncode == 0 and two.returncode == 0 and content("alone.h5") == content("two.h5"),
       "two ranks for each chain: the draws of one", built.stderr, alone.stderr, two.stderr)
report(four.returncode == 0 and content("alone.h5") == content("four.h5"), "and in two groups of two", four.stderr)
run("waves.yaml", "parts.h5", "run.ranks_per_chain=2", "run.draws=20", ranks=2)
run("waves.yaml", "parts.h5", ranks=3, resume=True)
report(content("alone.h5") == content("parts.h5"), "and from two parts, the second with one rank for each chain")
grid = [(w := 0.5 + 0.01 * (i + 0.5), p := -2 + 0.02 * (k + 0.5), math.exp(-p * p / 2 - sum(
    (math.sin(w * n / 8 + p) - math.sin(n / 8 + 0.3)) ** 2 for n in range(64)))) for i in range(150) for k in range(250)]
total = sum(row[2] for row in grid)
exact = [sum(row[2] * row[i] for row in grid) / total for i in (0, 1)]
spread = [math.sqrt(sum(row[2] * (row[i] - exact[i]) ** 2 for row in grid) / total) for i in (0, 1)]
done = run("waves.yaml", "long.h5", "run.ranks_per_chain=2", "run.draws=2000", "run.warmup=300", ranks=2)
fine, found = right("long.h5", exact, spread) if done.returncode == 0 else (False, done.stderr)
report(fine, "two ranks for each chain: means and standard deviations are exact", found, exact, spread)
done = limited(EMASS, "check", "waves.yaml")
report(done.returncode == 0, "emass check", done.stderr)

python = os.path.join(ROOT, "analysis", "venv", "bin", "python")
if os.path.exists(os.path.join(ROOT, "analysis", "venv", "ready")):
    done = limited(python, "-W", "ignore", "-c", f"""
import sys; sys.path.insert(0, {os.path.join(ROOT, "analysis")!r})
import emass
{block("python", 1)}
print((draws.posterior.speed.values == emass.read("alone.h5").posterior.speed.values).all())
""", env={**os.environ, "EMASS": EMASS})
    report(done.returncode == 0 and done.stdout == "True\n", "and from Python", done.stdout, done.stderr)
else:
    skip("and from Python", "no analysis/venv: make analysis/venv/ready")

# ---- a program with gradients, and one that fails ----

write("program.py", """#!/usr/bin/env python3
import json, math, os, signal, sys, time
kind = sys.argv[1] if len(sys.argv) > 1 else ""
for line in sys.stdin:
    request = json.loads(line)
    x = request["parameters"]["x"]
    answer = {"id": request["id"], "log_density": -sum((v - 1) ** 2 for v in x) / 2}
    if request["gradient"]:
        answer["gradient"] = [1 - v for v in x]
    bad = math.floor(1000 * abs(x[0])) % 50 == 7  # by the position: one in fifty
    if bad and kind:
        kind_now = kind if kind != "all" else ("junk", "size", "die", "error", "nan", "slow", "text", "close")[
            math.floor(100000 * abs(x[0])) % 8]
        if kind_now == "die":
            os._exit(3)
        if kind_now == "close":
            os.close(1)
            time.sleep(30)
        if kind_now == "slow":
            time.sleep(30)
        answer.update({"junk": {}, "size": {"log_density": [1, 2]}, "error": {"error": "did not converge"},
                       "nan": {"log_density": math.nan}, "text": {"log_density": "high"}}.get(kind_now, {}))
        if kind_now == "junk":
            print("no mesh", flush=True)
            continue
    if bad and "SIGNAL" in os.environ and not os.path.exists(asked := f"asked {x}"):
        open(asked, "w").close()
        if os.environ["SIGNAL"] == "status":  # as of a shell
            os._exit(128 + signal.SIGTERM)
        os.kill(os.getpid(), int(os.environ["SIGNAL"]))
    if abs(x[1] - 1) > 4:
        answer["log_density"] = -math.inf  # impossible, and no failure
    print(json.dumps(answer), flush=True)
""", 0o755)
model = {"name": "process", "command": ["./program.py"], "parameters": {"x": {"size": 2}}}
config("x.yaml", model)
config("gradient.yaml", {**model, "gradient": True}, "sampler: {name: hmc}\nrun: {chains: 4, warmup: 200, draws: 500}")
done = run("gradient.yaml", "gradient.h5")
fine, found = near("gradient.h5", {"x[0]": 1, "x[1]": 1}) if done.returncode == 0 else (False, done.stderr)
report(fine and limited(EMASS, "check", "gradient.yaml").returncode == 0, "hmc uses the gradient of a program", found)

config("bad.yaml", {**model, "command": ["./program.py", "all"], "evaluation_timeout": "1s",
                    "start_timeout": "9s"})
done = run("bad.yaml", "bad.h5", "run.warmup=30", "run.draws=30")
listed = failed("bad.h5") if done.returncode == 0 else []
whys = " | ".join(sorted({entry["why"] for entry in listed}))
report(done.returncode == 0 and re.search(r"note: [1-9]\d* of [1-9]\d* evaluations failed \([\d.]+ %\), and were rejections", done.stderr) and len(listed) == 16,
       "a program that fails in eight ways never ends the run", done.stderr, whys)
report(all(math.floor(1000 * abs(entry["position"][0])) % 50 == 7 for entry in listed) and listed != [],
       "what failed is listed with its position", listed)
for kind, why in {"die": "exit status 3", "slow": "took longer than 1", "junk": "expected a line of JSON",
                  "size": "has 2 items, expected 1", "error": "did not converge", "nan": "not a number"}.items():
    done = run("bad.yaml", "kind.h5", f"model.command=[./program.py, {kind}]", "run.warmup=0",
               "run.draws=6")
    report(done.returncode == 0 and why in str(failed("kind.h5")), f"why: {why}", done.stderr, failed("kind.h5"))

# ---- a signal of the batch system, which reaches the program too, is no failure ----

few = ["run.warmup=0", "run.draws=30"]
run("x.yaml", "undisturbed.h5", *few)
for name in ("SIGTERM", "SIGUSR1", "status"):
    os.environ["SIGNAL"] = str(int(getattr(signal, name, 0)) or name)
    done = run("x.yaml", "disturbed.h5", *few)
    asked = [file for file in os.listdir(".") if file.startswith("asked ")]
    report(asked and done.returncode == 0 and content("undisturbed.h5") == content("disturbed.h5") and not failed("disturbed.h5"),
           f"{name}: a program that is asked to end is started again, and asked the same", len(asked), done.stderr)
    for file in asked:
        os.remove(file)
del os.environ["SIGNAL"]

# ---- the same bytes on any number of ranks, and after a stop ----

for name, settings in {"slice": [], "rwm": ["sampler.name=rwm"], "tempered": ["temper.rungs=3"]}.items():
    kind = ["model.command=[./program.py, error]", "model.evaluation_timeout=none", "run.chains=5", "run.warmup=30",
            "run.draws=40", *settings]
    first = run("bad.yaml", "one.h5", *kind)
    second = run("bad.yaml", "three.h5", *kind, ranks=3)
    fine = first.returncode == 0 and second.returncode == 0
    same = fine and (content("one.h5") == content("three.h5") if name != "tempered" else
                     limited(EMASS, "diff", "one.h5", "three.h5").returncode == 0)
    report(same, f"{name}: the same file from 1 and 3 ranks", first.stderr, second.stderr)
    if name == "tempered":
        report("evaluations failed" in first.stderr and not failed("one.h5"), "tempered: failures are told, not listed")
        continue
    stopped = run("bad.yaml", "parts.h5", *kind, "run.draws=25", ranks=2)
    resumed = run("bad.yaml", "parts.h5", *kind, ranks=3, resume=True)
    report(resumed.returncode == 0 and content("one.h5") == content("parts.h5"),
           f"{name}: and from a run that was made in two parts, with its failures", stopped.stderr, resumed.stderr)

# ---- a run that is killed repeats what was running alone ----


def evaluations(log):
    with open(log, encoding="utf-8") as lines:
        return sum(line.startswith("{") for line in lines)


kind = ["model.command=[./program.py, error]", "model.evaluation_timeout=none", "run.warmup=60", "run.draws=60"]
whole = run("bad.yaml", "whole.h5", *kind, "model.evaluation_log=log.jsonl")
os.rename("log.jsonl", "whole.jsonl")
kills = 0
while kills < 5:
    running = subprocess.Popen([EMASS, "run", "bad.yaml", "--quiet", "--resume", "--output", "killed.h5",
                                *[word for s in [*kind, "model.evaluation_log=log.jsonl"] for word in ("--set", s)]],
                               stderr=subprocess.DEVNULL)
    time.sleep(0.4 + 0.05 * kills)
    running.kill()
    kills += running.wait() != 0
    if running.returncode == 0:
        break
killed = run("bad.yaml", "killed.h5", *kind, "model.evaluation_log=log.jsonl", ranks=2, resume=True)
more = evaluations("log.jsonl") - evaluations("whole.jsonl") if killed.returncode == 0 else -1
report(killed.returncode == 0 and 0 <= more <= kills and limited(EMASS, "diff", "whole.h5", "killed.h5").returncode == 0,
       f"{kills} kills lose no evaluation but what was running", more, whole.stderr, killed.stderr)

# ---- one line where the config is wrong, and nothing written ----


def refused(name, expected, status=2):
    done = run(name, "refused.h5")
    lines = [line for line in done.stderr.splitlines() if line.startswith("emass")]
    report(done.returncode == status and len(lines) == 1 and expected in lines[0] and not os.path.exists("refused.h5"),
           f"refused: {expected}", done.returncode, done.stderr)


for change, expected in {
    "command=[./none]": "model.command: found ./none, which cannot be started",
    "parameters={x: {normal: 1}}": "model.parameters.x: found normal, expected normal: [2 finite numbers]",
    "parameters={x: {norml: [0, 1]}}": "model.parameters.x: found norml, expected a distribution",
    "parameters={x: {normal: [0, -1]}}": "expected a scale, rate or shape above 0",
    "parameters={x: {uniform: [1, 0]}}": "model.parameters.x: found uniform",
    "parameters={x: 3}": "model.parameters.x: found no mapping",
    "parameters=3": "model.parameters: found",
    "sd=[1]": "model.sd: found 1 numbers without model.data",
    "data=[1, 2]": "model.sd: found 0 numbers, expected 1 or 2",
}.items():
    key, _, value = change.partition("=")
    with open("x.yaml", encoding="utf-8") as file:
        text = file.read().splitlines()
    write("wrong.yaml", f"model:\n  name: process\n  command: [./program.py]\n" +
          ("" if key == "parameters" else "  parameters: {x: {size: 2}}\n") + f"  {key}: {value}\n")
    if key == "command":
        write("wrong.yaml", f"model: {{name: process, command: {value}, parameters: {{x: {{size: 2}}}}}}\n")
    refused("wrong.yaml", expected)
write("wrong.yaml", "model: {name: process, command: [./program.py], parameters: {x: {size: 2}}}\nsampler: {name: hmc}\n")
refused("wrong.yaml", "sampler hmc needs gradients, and model process has none: expected slice or rwm")
write("wrong.yaml", "model: {name: process, command: [sh, -c, 'while read -r l; do echo reading the mesh; done'], "
      "parameters: {x: {size: 2}}}\n")
refused("wrong.yaml", "found 'reading the mesh' from the process, expected a line of JSON", 1)

config("wrong.yaml", {"name": "waves", "library": "./waves.so"}, "run: {ranks_per_chain: 2, shards: 2}")
refused("wrong.yaml", "run.ranks_per_chain is 2 and run.shards is 2, expected one of them")
config("wrong.yaml", {"name": "waves", "library": "./waves.so"}, "run: {ranks_per_chain: 2}")
done = limited(EMASS, "check", "wrong.yaml")
report(done.returncode == 2 and "number of ranks: found 1, expected a multiple of 2" in done.stderr
       and "run.ranks_per_chain" in done.stderr, "emass check on too few ranks", done.stderr)
config("wrong.yaml", {"name": "eight_schools"}, "run: {ranks_per_chain: 2}")
done = run("wrong.yaml", "refused.h5", ranks=2)
report(done.returncode == 2 and "model eight_schools does not divide the work" in done.stderr,
       "ranks_per_chain of a model that has no use for it", done.stderr)

# ---- servers ----


class Handler(http.server.BaseHTTPRequestHandler):
    """UM-Bridge 1.0: model `normal`, a log density with its gradient, and `forward`."""
    protocol_version = "HTTP/1.1"
    seconds = 0.0

    def answer(self, value, status=200):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):  # noqa: N802
        self.answer({"protocolVersion": 1.0, "models": self.server.models})

    def do_POST(self):  # noqa: N802
        start = time.perf_counter()
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        forward = request["name"] == "forward"
        kind = self.path[1:]
        if kind == "InputSizes":
            self.answer({"inputSizes": [1, 1] if forward else [2]})
        elif kind == "OutputSizes":
            self.answer({"outputSizes": [3] if forward else [1]})
        elif kind == "ModelInfo":
            self.answer({"support": {"Evaluate": True, "Gradient": True}})
        else:
            self.evaluate(kind, forward, request)
        self.server.seconds += time.perf_counter() - start
        self.server.count += 1

    def evaluate(self, kind, forward, request):
        x = [v for vector in request["input"] for v in vector]
        if self.server.fails and math.floor(1000 * abs(x[0])) % 50 == 7:
            self.answer({"error": {"type": "ModelError", "message": "no convergence"}}, 500)
        elif kind == "Gradient":
            s = request["sens"]
            value = [1 - x[0], 1 - x[1]] if not forward else [s[0] + s[1]] if request["inWrt"] == 0 else [s[1] + 2 * s[2]]
            self.answer({"output": [s[0] * v for v in value] if not forward else value})
        else:
            c = request["config"].get("scale", 0)
            self.answer({"output": [[x[0], x[0] + x[1], c * x[1]]] if forward else [[-sum((v - 1) ** 2 for v in x) / 2]]})

    def log_message(self, *_):
        pass


def serve(models=("normal",), fails=False):
    class Server(http.server.ThreadingHTTPServer):
        daemon_threads = True
    Handler.wbufsize = 65536
    Handler.disable_nagle_algorithm = True
    server = Server(("127.0.0.1", 0), Handler)
    server.models, server.fails, server.seconds, server.count = list(models), fails, 0.0, 0
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_port}"


with open("without.yaml", "w", encoding="utf-8") as file:
    file.write("model: {name: umbridge, url: 'http://127.0.0.1:1'}\n")
done = limited(EMASS, "check", "without.yaml")
if "libcurl" in done.stderr:
    skip("servers", "no libcurl")
    finish()
report(done.returncode == 2 and "no answer of a UM-Bridge server" in done.stderr, "no server: one line", done.stderr)

server, url = serve()
config("server.yaml", {"name": "umbridge", "url": url})
start = time.perf_counter()
done = run("server.yaml", "server.h5")
took = time.perf_counter() - start
fine, found = near("server.h5", {"theta[0]": 1, "theta[1]": 1}) if done.returncode == 0 else (False, done.stderr)
report(fine, "a log density of a server", found)
done = limited(EMASS, "check", "server.yaml")
report(done.returncode == 0 and "agrees with central differences" in done.stdout, "its gradient", done.stdout)
done = run("server.yaml", "hmc.h5", "sampler.name=hmc")
fine, found = near("hmc.h5", {"theta[0]": 1, "theta[1]": 1}) if done.returncode == 0 else (False, done.stderr)
report(fine, "hmc uses it", found)
failing, bad_url = serve(fails=True)
done = run("server.yaml", "bad.h5", f"model.url=[{bad_url}, {url}]", ranks=2)
fine, found = near("bad.h5", {"theta[1]": 1}) if done.returncode == 0 else (False, done.stderr)
report(fine and "no convergence" in str(failed("bad.h5")) and failing.count > 100,
       "two servers for two ranks, one of which fails once in fifty", done.stderr, found)

# a + b has precision 1, and so on: the posterior of (a, b) is normal; exact mean by its two equations
both, both_url = serve(("normal", "forward"))
forward = {"name": "umbridge", "url": both_url, "server_model": "forward", "config": {"scale": 2}, "data": [1, 3, 5],
           "sd": 1, "parameters": {"a": {"normal": [0, 2]}, "b": {"normal": [0, 2]}}}
config("forward.yaml", forward, "run: {chains: 4, warmup: 80, draws: 120}")
p, q, r = 2 + 0.25, 1.0, 1 + 4 + 0.25  # precision: [[p, q], [q, r]], and the right side
u, v = 1 + 3, 3 + 10
determinant = p * r - q * q
expected = {"a": (r * u - q * v) / determinant, "b": (p * v - q * u) / determinant}
done = run("forward.yaml", "forward.h5")
fine, found = near("forward.h5", expected) if done.returncode == 0 else (False, done.stderr)
report(fine, "a forward model beside data", found, expected)
done = limited(EMASS, "check", "forward.yaml")
report(done.returncode == 0 and "agrees with central differences" in done.stdout, "the gradient by its outputs",
       done.stdout[-400:], done.stderr)
config("temper.yaml", forward, "temper: {rungs: 4}\nrun: {chains: 2, warmup: 40, draws: 60}")
done = limited(EMASS, "run", "temper.yaml", "--overwrite", "--output", "temper.h5")
evidence = re.search(r"log evidence (-?[\d.]+) \(standard error ([\d.e-]+), reference: prior", done.stdout)
# y ~ N(0, I + 4 A A^T) with A = [[1, 0], [1, 1], [0, 2]]
S = [[5, 4, 0], [4, 9, 8], [0, 8, 17]]
det = 5 * (9 * 17 - 64) - 4 * 4 * 17
y = [1, 3, 5]
inverse = [[89, -68, 32], [-68, 85, -40], [32, -40, 29]]
square = sum(y[i] * inverse[i][k] * y[k] for i in range(3) for k in range(3)) / det
log_z = -1.5 * math.log(2 * math.pi) - math.log(det) / 2 - square / 2
report(evidence and abs(float(evidence[1]) - log_z) < 5 * float(evidence[2]),
       "tempered: the log evidence is that of the normal law of the data", done.stdout[-500:], done.stderr, log_z)
for change, expected in {
    "server_model: other": "model.server_model: found other, expected one of",
    "data: [1, 2]": "model.data: found 2 numbers and 3 outputs of the program, expected as many",
    "parameters: {a: {}}": "model.parameters: found 1 numbers, expected the 2 that model forward",
    "config: 3": "model.config: found",
}.items():
    key, _, value = change.partition(": ")
    text = "".join(f"  {k}: {value if k == key else json.dumps(v)}\n" for k, v in forward.items())
    write("wrong.yaml", "model:\n" + text)
    refused("wrong.yaml", expected)

# ---- a server that is killed, and comes back or does not ----


class Process:
    """A server of model `normal` in a process of its own, on a port that stays."""

    def __init__(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        write("server.py", "import http.server, json, math, sys, time\n" + inspect.getsource(Handler) + """
Handler.wbufsize, Handler.disable_nagle_algorithm = 65536, True
server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
server.models, server.fails, server.seconds, server.count = ["normal"], False, 0.0, 0
server.serve_forever()
""")
        self.start()

    def start(self):
        self.running = subprocess.Popen([sys.executable, "server.py", str(self.port)], stderr=subprocess.DEVNULL)
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            time.sleep(0.05)

    def kill(self):
        self.running.kill()
        self.running.wait()


def killed_after(server, lines, *settings, comes_back):
    """A run whose server is killed when the log has so many lines."""
    running = subprocess.Popen([EMASS, "run", "own.yaml", "--progress", "none", "--output", "lost.h5", "--resume",
                                *[word for setting in settings for word in ("--set", setting)]], stderr=subprocess.PIPE, text=True)
    while running.poll() is None and (not os.path.exists("own.jsonl") or evaluations("own.jsonl") < lines):
        time.sleep(0.01)
    server.kill()
    if comes_back:
        time.sleep(0.5)
        server.start()
    return running.communicate()[1], running.returncode


def own_config(**options):
    config("own.yaml", {"name": "umbridge", "url": f"http://127.0.0.1:{own.port}", **options}, "run: {chains: 4, warmup: 30, draws: 60}")


own = Process()
own_config()
whole = run("own.yaml", "whole.h5", "model.evaluation_log=own.jsonl")
os.remove("own.jsonl")
said, status = killed_after(own, 800, "model.evaluation_log=own.jsonl", comes_back=True)
same = limited(EMASS, "diff", "whole.h5", "lost.h5")
report(status == 0 and same.returncode == 0 and not failed("lost.h5"),
       "a server that is killed and started anew: the draws of one that was not", said, whole.stderr, same.stdout)
for name in ("lost.h5", "own.jsonl"):
    os.remove(name)
own_config(reconnect_timeout="1s")
said, status = killed_after(own, 800, "model.evaluation_log=own.jsonl", comes_back=False)
report(status == 1 and "no server for 1 s" in said and "go on with --resume" in said, "one that does not come back ends the run", said)
before = evaluations("own.jsonl")
own.start()
own_config()
done = run("own.yaml", "lost.h5", "model.evaluation_log=own.jsonl", resume=True)
report(done.returncode == 0 and before >= 800 and limited(EMASS, "diff", "whole.h5", "lost.h5").returncode == 0,
       "which goes on when the server is there again", done.stderr)
own.kill()

# ---- what a call costs beside the server's own time ----

costs = []
for _ in range(2):
    server.seconds, server.count = 0.0, 0
    start = time.perf_counter()
    done = run("server.yaml", "cost.h5", "run.chains=1", "run.draws=150", "run.warmup=50")
    took = time.perf_counter() - start
    costs.append((took - server.seconds - 0.5) / max(server.count, 1))
report(min(costs) < 1e-3, f"a call costs {1e6 * min(costs):.0f} us beside the server's own time", costs)
finish()
