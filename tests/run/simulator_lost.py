#!/usr/bin/env python3
"""A UM-Bridge server that ends in the middle of a run and stays away: the run ends with one line and a checkpoint of
its last complete state, and the resumed run makes the same bytes and repeats only what was in flight. TAP."""
import atexit
import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import EMASS, finish, limited, report  # noqa: E402

os.environ["SOURCE_DATE_EPOCH"] = "0"
scratch = tempfile.TemporaryDirectory()
os.chdir(scratch.name)

# A normal log density, with its gradient. Each request is logged before its answer, by one write. The server ends at
# the request whose number in the log is `most`.
SERVER = """
import http.server, json, os, sys
port, log, most = int(sys.argv[1]), os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT), int(sys.argv[3])
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version, wbufsize, disable_nagle_algorithm, count = "HTTP/1.1", 65536, True, 0
    def answer(self, value):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_GET(self):
        self.answer({"protocolVersion": 1.0, "models": ["normal"]})
    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        kind = self.path[1:]
        if kind in ("Evaluate", "Gradient"):
            x = request["input"][0]
            os.write(log, (json.dumps([kind, x]) + chr(10)).encode())
            Handler.count += 1
            if Handler.count == most:
                os._exit(0)
            self.answer({"output": [1 - v for v in x] if kind == "Gradient" else [[-sum((v - 1) ** 2 for v in x) / 2]]})
        else:
            self.answer({"inputSizes": [2], "outputSizes": [1], "support": {"Evaluate": True, "Gradient": True}})
    def log_message(self, *_):
        pass
http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""
with open("server.py", "w", encoding="utf-8") as file:
    file.write(SERVER)


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Server:
    def __init__(self):
        self.port, self.running = free_port(), None
        atexit.register(self.stop)

    def start(self, log, most=0):
        """With a log of its own, and the number of the request at which it ends; 0: none."""
        self.stop()
        self.running = subprocess.Popen([sys.executable, "server.py", str(self.port), log, str(most)],
                                        stderr=subprocess.DEVNULL)
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            time.sleep(0.05)

    def stop(self):
        if self.running:
            self.running.kill()
            self.running.wait()


def run(output, ranks, resume=False):
    launch = ["mpirun", "--quiet", "-n", str(ranks)] if ranks > 1 else []
    return limited(*launch, EMASS, "run", "lost.yaml", "--progress", "none", "--quiet", "--output", output,
                   "--resume" if resume else "--overwrite")


def requests(log):
    with open(log, encoding="utf-8") as lines:
        return sum(1 for _ in lines)


def content(name):
    with open(name, "rb") as file:
        return file.read()


def lose(name, phase, servers, ranks, most, rest, times=1, parameters="{x: {size: 2}}"):
    """Loses the last server at its request `most`, `times` times, and goes on."""
    urls = json.dumps([f"http://127.0.0.1:{server.port}" for server in servers])
    with open("lost.yaml", "w", encoding="utf-8") as config:
        config.write(f"model: {{name: umbridge, url: {urls}, parameters: {parameters}, reconnect_timeout: 0.5s}}\n{rest}\n")
    for log in ("whole.log", "lost.log"):
        if os.path.exists(log):
            os.remove(log)
    for server in servers:
        server.start("whole.log")
    whole = run("whole.h5", ranks)
    said = []
    for i in range(times):
        for server in servers:
            server.start("lost.log", most if i == 0 and server is servers[-1] else 3 if server is servers[-1] else 0)
        done = run("lost.h5", ranks, resume=i > 0)
        own = [line for line in done.stderr.splitlines() if not line.startswith("emass: resuming")]
        said.append(done.stderr)
        fine = done.returncode == 1 and len(own) == 1 and "no server for 0.5 s" in own[0] and re.search(
            r"stopped after [1-9]\d* of \d+ iterations, with a checkpoint: go on with --resume$", own[0])
        report(fine and os.path.exists("lost.h5.checkpoint"), f"{name}: one line, and a checkpoint{f' ({i + 1})' * (times > 1)}",
               whole.stderr, done.returncode, done.stdout, done.stderr)
    for server in servers:
        server.start("lost.log")
    done = run("lost.h5", ranks, resume=True)
    said.append(done.stderr)
    lost, whole_requests = requests("lost.log"), requests("whole.log")
    report(done.returncode == 0 and content("whole.h5") == content("lost.h5"), f"{name}: the same bytes after --resume",
           *said)
    report(f"({phase})" in said[-1], f"{name}: it goes on in {phase}", *said)
    # Each rank has one request in flight. An evaluation with a gradient is two.
    most_repeated = times * ranks * (2 if "hmc" in rest else 1)
    report(0 < lost - whole_requests <= most_repeated, f"{name}: {lost - whole_requests} requests of {whole_requests} were repeated",
           most_repeated)
    for file in ("lost.h5", "whole.h5"):
        os.remove(file)


RUN = "run: {chains: 4, warmup: 60, draws: 80, seed: 3}"
one, two = Server(), Server()
lose("slice", "warmup", [one], 1, 500, RUN)
lose("slice, later, twice", "sampling", [one], 1, 4000, RUN, times=2)
lose("two ranks", "sampling", [one], 2, 4000, RUN)
lose("one server of two", "warmup", [one, two], 2, 1000, RUN)
lose("hmc", "warmup", [one], 2, 1200, f"sampler: {{name: hmc}}\n{RUN}")
lose("hmc, later", "sampling", [one], 1, 3500, f"sampler: {{name: hmc}}\n{RUN}")
lose("tempered", "sampling", [one], 1, 1500, "temper: {rungs: 3}\nrun: {chains: 2, warmup: 20, draws: 30, seed: 3}",
     parameters="{x: {normal: [0, 3], size: 2}}")
finish()
