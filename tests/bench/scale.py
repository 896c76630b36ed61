#!/usr/bin/env python3
"""What a run costs beyond its gradients, on thousands of simulated ranks (`make bench-scale`).

The engine itself runs (scale/scale.c), each rank with its chains, on a network that SimGrid's SMPI
simulates: messages take the time that they take there, everything that ranks compute the time it
takes on this machine, and a gradient as many seconds as --gradient says. Thousands of ranks share the
caches of this machine, and each finds nothing of its own there: with --computing free all but gradients
and messages takes no time, and figures are the same on any machine. `unequal` is the time for
which ranks wait because one of them has more gradients to compute before they meet; weak scaling is the
time of the first number of ranks over that of each, for as many chains on a rank. Memory is what a rank
holds at most, and message sizes what a rank sends in one call: functions of ranks and dimension
(--dim 10 100). `scan` is the time of an iteration after warmup, on the slowest rank, with all waiting. With --rungs N
the run is tempered, with one rung a rank. Left out are the file system, the start of the processes and noise of the nodes.
Prints a table in Markdown.
"""
import argparse
import json
import math
import os
import subprocess
import sys
import tempfile

# Nodes, as a function of how many there should be at least, and how SimGrid writes the topology.
BANDWIDTH, LATENCY = "12.5GBps", "500ns"  # of a link: 100 Gb/s


def fat_tree(n):
    """Two levels, with as many links up as down."""
    k = max(2, math.isqrt(n - 1) + 1)
    return k * k, f'topology="FAT_TREE" topo_parameters="2;{k},{k};1,{k};1,1"'


def torus(n):
    k = max(2, round(n ** (1 / 3) + 0.49))
    return k**3, f'topology="TORUS" topo_parameters="{k},{k},{k}"'


def dragonfly(n):
    """Groups of 4 chassis of 4 routers, of 4 nodes each."""
    k = max(2, -(-n // 64))
    return k * 64, f'topology="DRAGONFLY" topo_parameters="{k},1;4,1;4,1;4"'


# Every rank has a copy of the program's globals; a message that is not waited for would stay in a list of
# SimGrid 3.32 for good. Collectives go along binomial trees, there and back: what MPI libraries do instead with
# few bytes, recursive doubling, takes half as long and six times as many messages to simulate.
SETTINGS = ("smpi/privatization:dlopen", "smpi/host-speed:1Gf", "contexts/stack-size:1024",
            "smpi/send-is-detached-thresh:0", "smpi/coll-selector:ompi", "smpi/allreduce:redbcast",
            "smpi/reduce:binomial", "smpi/bcast:binomial_tree", "smpi/allgather:GB", "smpi/allgatherv:GB",
            "smpi/gather:ompi_binomial", "smpi/alltoallv:default")

# SMPI takes some time for each look whether a message is there, and more and more for each look in vain, of any rank. In
# a tempered run ranks look while they wait for their neighbours: a hundredth of a gradient is precise enough.
def looks(gradient):
    return "smpi/grow-injected-times:no", f"smpi/test:{gradient / 100}", f"smpi/iprobe:{gradient / 100}"


# Ranks are threads of one process here, with one heap, whose small pieces the C library joins now and then: for all
# of them, which would be some rank's time, the more the more ranks there are (15 to 30 ms of 1,024).
HEAP = {"GLIBC_TUNABLES": "glibc.malloc.mxfast=0"}

TOPOLOGIES = {"fat-tree": fat_tree, "torus": torus, "dragonfly": dragonfly}


def write_platform(folder, topology, ranks, per_node):
    nodes, shape = TOPOLOGIES[topology](-(-ranks // per_node))
    with open(f"{folder}/platform.xml", "w") as file:
        file.write("<?xml version='1.0'?>\n"
                   '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n<platform version="4.1">\n'
                   f'<cluster id="c" prefix="n" suffix="" radical="0-{nodes - 1}" speed="1Gf" core="{per_node}" '
                   f'bw="{BANDWIDTH}" lat="{LATENCY}" loopback_bw="10GBps" loopback_lat="200ns" {shape}/>\n</platform>\n')
    with open(f"{folder}/hosts", "w") as file:
        file.writelines(f"n{rank // per_node}\n" for rank in range(ranks))


def simulate(program, ranks, dim, o):
    """What one run says, as a dict."""
    with tempfile.TemporaryDirectory(dir=o.scratch) as folder:
        write_platform(folder, o.topology, ranks, o.per_node)
        command = ["smpirun", "-np", ranks, "-platform", f"{folder}/platform.xml", "-hostfile", f"{folder}/hosts",
                   *(f"--cfg={setting}" for setting in (*SETTINGS, *(looks(o.gradient) if o.rungs else ()))),
                   f"--cfg=smpi/tmpdir:{folder}",
                   f"--cfg=smpi/simulate-computation:{'yes' if o.computing == 'measured' else 'no'}",
                   "--log=root.thres:warning",
                   program, ranks // o.rungs if o.rungs else ranks * o.chains_per_rank, dim, o.gradient,
                   *([f"temper.rungs={o.rungs}", "temper.legs=1"] if o.rungs else []), *o.override]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                              env=os.environ | HEAP)
    lines = [line for line in done.stdout.splitlines() if line.startswith('{"ranks"')]
    if done.returncode or not lines:
        sys.exit(f"smpirun ended with status {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    result = json.loads(lines[-1])
    return result


def seconds(result):
    """Of the whole run."""
    return result["start"] + result["total"]


def row(result, first):
    """A line of the table: seconds, then shares of them in percent; gradients are those of the start, too."""
    share = lambda name: f"{100 * result[name] / result['total']:.2f}"
    return [result["ranks"], result["chains"], result["dim"], f"{1000 * result['gradient']:g}",
            result["warmup"], result["draws"], f"{result['total']:.2f}",
            f"{100 * seconds(first) / seconds(result):.1f}", f"{100 * result['computing'] / seconds(result):.1f}",
            share("unequal"),
            f"{1000 * result['scan']:.3f}",
            share("exchange"), share("diagnostics"), f"{result['start']:.2f}",
            sum(m["calls"] for m in result["messages"]), kB(max(m["bytes"] for m in result["messages"])),
            kB(result["memory_first"]), kB(result["memory_most"])]


def kB(size):
    return f"{size / 1e3:.1f}"


HEAD = ["ranks", "chains", "dim", "ms a gradient", "warmup", "draws", "seconds", "weak scaling %", "gradients %",
        "unequal %", "scan ms", "exchange %", "diagnostics %", "start s", "collectives", "largest message kB", "memory of rank 0 kB",
        "of the largest kB"]


def table(head, rows):
    lines = [head, ["--:"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def messages(result):
    """Of each kind the calls, and the sizes on the last number of ranks."""
    kinds = {}
    for m in result["messages"]:
        kind = kinds.setdefault(m["what"], {"calls": 0, "bytes": 0, "largest": 0})
        kind["calls"] += m["calls"]
        kind["bytes"] += m["calls"] * m["bytes"]
        kind["largest"] = max(kind["largest"], m["bytes"])
    return table(["what", "calls", "largest, bytes", "in all, bytes"],
                 [[what, k["calls"], k["largest"], k["bytes"]] for what, k in kinds.items()])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program", help="build/smpi/tests/bench/scale/scale")
    parser.add_argument("--ranks", type=int, nargs="+", default=[64, 256, 1024, 4096])
    parser.add_argument("--chains-per-rank", type=int, default=1)
    parser.add_argument("--rungs", type=int, default=0,
                        help="a tempered run, a rung of one ladder on each rank: ladders of so many rungs, one leg")
    parser.add_argument("--dim", type=int, nargs="+", default=[10])
    parser.add_argument("--gradient", type=float, default=1e-3, help="simulated seconds of one (1e-3)")
    parser.add_argument("--computing", choices=["measured", "free"], default="measured", help="besides gradients")
    parser.add_argument("--topology", choices=TOPOLOGIES, default="fat-tree")
    parser.add_argument("--per-node", type=int, default=1, help="ranks of a node, which share its link (1)")
    parser.add_argument("--override", nargs="*", default=[], metavar="KEY.PATH=VALUE", help="of the run's config")
    parser.add_argument("--scratch", help="a folder for SMPI's copies of the program (1.4 MB for each rank)")
    parser.add_argument("--json", help="a file to add what each run says to, a line each")
    o = parser.parse_args()
    rows = []
    for ranks, dim in ((ranks, dim) for dim in o.dim for ranks in o.ranks):
        result = simulate(o.program, ranks, dim, o)
        first = result if ranks == o.ranks[0] else first
        if o.json:
            with open(o.json, "a") as file:
                given = {"topology": o.topology, "per_node": o.per_node, "computing": o.computing}
                file.write(json.dumps({**given, **result}) + "\n")
        rows.append(row(result, first))
        print("#", " ".join(map(str, rows[-1])), file=sys.stderr, flush=True)
    print(f"{o.topology}, {BANDWIDTH} and {LATENCY} a link, {o.per_node} rank(s) a node, computing {o.computing}\n\n"
          f"{table(HEAD, rows)}\n\n"
          f"Collectives of a rank, on {ranks} ranks, in {dim} dimensions:\n\n{messages(result)}")


if __name__ == "__main__":
    main()
