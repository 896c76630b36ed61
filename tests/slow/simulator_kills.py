"""Runs of simulators that are killed, one rank or all, at random moments, and go on with --resume until they are done:
the file is that of an undisturbed run, and no evaluation is done twice but those that were running at a kill, one a
rank. And: of a run on 8 ranks, whose evaluations take 1 to 100 ms, at least 80 % is evaluations. TAP; $1: the build;
EMASS_KILLS (25) of each kind of model and each kernel, from seed EMASS_SEED (1); with 0 the last test alone is done."""
import contextlib
import http.server
import json
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "run"))
from lib import EMASS, finish, limited, report, skip  # noqa: E402

os.environ["SOURCE_DATE_EPOCH"] = "0"
KILLS = int(os.environ.get("EMASS_KILLS", "25"))
RANKS = 2
random.seed(int(os.environ.get("EMASS_SEED", "1")))
PROGRAM = r"""
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
int main(int argc, char **argv) /* COUNTED LONGEST: a byte for each answer, after up to so many seconds */
{
    static char line[1 << 16];
    const int counted = open(argv[1], O_WRONLY | O_CREAT | O_APPEND, 0644);
    while (argc > 2 && fgets(line, sizeof line, stdin)) {
        char *at = strchr(strstr(line, "\"x\":"), '[') + 1;
        const double x = strtod(at, &at), y = strtod(at + 1, NULL), u = fmod(fabs(x) * 1e4, 1);
        const double s = atof(argv[2]) * pow(100, u - 1);
        nanosleep(&(struct timespec){(time_t)s, (long)(fmod(s, 1) * 1e9)}, NULL);
        if (write(counted, ".", 1) != 1)
            return 1;
        if ((long)(1000 * fabs(x)) % 50 == 7)
            puts("{\"error\": \"did not converge\"}");
        else
            printf("{\"log_density\": %.17g}\n", -((x - 1) * (x - 1) + (y - 1) * (y - 1)) / 2);
        fflush(stdout);
    }
    return 0;
}
"""


class Handler(http.server.BaseHTTPRequestHandler):
    """UM-Bridge 1.0: a log density of two numbers, of which one evaluation in fifty fails."""
    protocol_version = "HTTP/1.1"
    wbufsize, disable_nagle_algorithm = 65536, True

    def answer(self, value, status=200):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):  # noqa: N802
        self.answer({"protocolVersion": 1.0, "models": ["normal"]})

    def do_POST(self):  # noqa: N802
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        known = {"/InputSizes": {"inputSizes": [2]}, "/OutputSizes": {"outputSizes": [1]},
                 "/ModelInfo": {"support": {"Evaluate": True}}}
        with contextlib.suppress(OSError):  # who asked may be dead
            if self.path in known:
                self.answer(known[self.path])
                return
            x, y = request["input"][0]
            time.sleep(0.002)
            with self.server.lock:
                self.server.count += 1
            if math.floor(1000 * abs(x)) % 50 == 7:
                self.answer({"error": {"type": "ModelError", "message": "no convergence"}}, 500)
            else:
                self.answer({"output": [[-((x - 1) ** 2 + (y - 1) ** 2) / 2]]})

    def log_message(self, *_):
        pass


def serve():
    class Server(http.server.ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_):
            pass

    server = Server(("127.0.0.1", 0), Handler)
    server.count, server.lock = 0, threading.Lock()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def command(output, *, ranks=RANKS):
    return ["mpirun", "-n", str(ranks), "--oversubscribe", EMASS, "run", "run.json", "--progress", "none", "--resume", "--output", output]


def children(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as file:
        return [int(one) for one in file.read().split()]
    return []


def size(path):
    return os.path.getsize(path) if os.path.exists(path) else 0


def positions(log):
    """Of each evaluation of a log, and the number of lines that are not complete."""
    found, broken = [], 0
    with open(log, encoding="utf-8") as lines:
        for line in lines:
            try:
                found += [tuple(json.loads(line)["x"])] if line != "\n" else []
            except ValueError:
                broken += 1
    return found, broken


def kill_once(output, most):
    """Starts or resumes it, waits until its log has up to so many bytes more, and kills a rank or all; False: the run
    was done before."""
    before, wanted = size("log.jsonl"), random.randint(1, most)
    running = subprocess.Popen(command(output), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while running.poll() is None and size("log.jsonl") < before + wanted:
        time.sleep(0.005)
    ranks = children(running.pid)
    for rank in random.sample(ranks, random.choice([1, len(ranks)])) if ranks else []:
        with contextlib.suppress(ProcessLookupError):
            os.kill(rank, signal.SIGKILL)
    return running.wait() != 0


def check_kills(kind, model, kernel, counted):
    kind, draws = f"{kind}, {kernel}", {"slice": 300, "rwm": 1500}[kernel]
    for name in ("log.jsonl", "whole.h5", "killed.h5"):
        with contextlib.suppress(FileNotFoundError):
            os.remove(name)
    with open("run.json", "w", encoding="utf-8") as file:
        json.dump({"model": {**model, "evaluation_log": "log.jsonl"}, "sampler": {"name": kernel},
                   "run": {"chains": 4, "warmup": 100, "draws": draws}}, file)
    start = counted()
    whole = limited(*command("whole.h5"))
    os.rename("log.jsonl", "whole.jsonl")
    planned, start, kills = counted() - start, counted(), 0
    most = size("whole.jsonl") * 2 // (3 * KILLS)  # a third of the run, until the last kill, and what is done meanwhile
    while kills < KILLS and kill_once("killed.h5", most):
        kills += 1
    last = limited(*command("killed.h5", ranks=3))
    more = counted() - start - planned
    same = limited(EMASS, "diff", "whole.h5", "killed.h5")
    report(whole.returncode == last.returncode == 0 and kills == KILLS and same.returncode == 0,
           f"{kind}: {kills} kills, and the file of an undisturbed run", whole.stderr, last.stderr, same.stdout)
    (whole_log, _), (log, broken) = positions("whole.jsonl"), positions("log.jsonl")
    report(set(whole_log) == set(log) and len(log) == len(set(log)) + len(whole_log) - len(set(whole_log)) and broken <= kills,
           f"{kind}: the log has each of them once, and {broken} lines that a kill has cut", len(whole_log), len(log), len(set(log)))
    report(0 <= more <= RANKS * kills, f"{kind}: of {planned} evaluations {more} were done twice, at most {RANKS} a kill", more)


def check_all_kills():
    server = serve()
    url = f"http://127.0.0.1:{server.server_port}"
    with open("run.json", "w", encoding="utf-8") as file:
        json.dump({"model": {"name": "umbridge", "url": url}}, file)
    by_http = "libcurl" not in limited(EMASS, "check", "run.json").stderr
    process = {"name": "process", "command": ["./program", "counted", "0.01"], "parameters": {"x": {"size": 2}}}
    for kernel in ("slice", "rwm"):
        check_kills("process", process, kernel, lambda: size("counted"))
        if by_http:
            check_kills("umbridge", {"name": "umbridge", "url": url}, kernel, lambda: server.count)
    if not by_http:
        skip("a server that is killed", "no libcurl")


def check_spread():
    """The share of evaluations in the time of all ranks, without the start of the ranks, which is measured alone."""
    seconds, took = 0.0, []
    for longest in ("0.00001", "0.1"):
        with contextlib.suppress(FileNotFoundError):
            os.remove("log.jsonl")
        few = {"warmup": 1, "draws": 1} if not took else {"warmup": 60, "draws": 60}
        with open("run.json", "w", encoding="utf-8") as file:
            json.dump({"model": {"name": "process", "command": ["./program", "counted", longest], "parameters": {"x": {"size": 2}},
                                 "evaluation_log": "log.jsonl"}, "run": {"chains": 8, **few}}, file)
        start = time.monotonic()
        done = limited(*command(f"{longest}.h5", ranks=8))
        took.append(time.monotonic() - start)
    with open("log.jsonl", encoding="utf-8") as log:
        seconds = sum(json.loads(line)["seconds"] for line in log if line.startswith("{"))
    share = seconds / 8 / (took[1] - took[0])
    report(done.returncode == 0 and share > 0.8, f"8 ranks: {100 * share:.0f} % of the time is evaluations of 1 to 100 ms, and "
           f"{100 * seconds / 8 / took[1]:.0f} % with the start of the ranks", done.stderr)


with tempfile.TemporaryDirectory(prefix="emass-kills-") as folder:
    os.chdir(folder)
    with open("program.c", "w", encoding="utf-8") as source:
        source.write(PROGRAM)
    subprocess.run(["cc", "-O2", "program.c", "-lm", "-o", "program"], check=True)
    if KILLS:
        check_all_kills()
    check_spread()
finish()
