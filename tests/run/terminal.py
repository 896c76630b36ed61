#!/usr/bin/env python3
"""What a person at a terminal sees: help, lists and tables that fit it, a bar, colours, and what
Ctrl-C leaves; and what a pipe gets instead. TAP; $1: the build."""
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import tempfile
import termios
import time

from lib import EMASS, LIMIT, SUMMARY_COLUMNS, finish, limited, report

WIDTHS = (60, 80, 132, 200)
COLOUR = re.compile("\033\\[[0-9;]*m")
CONFIG = """\
model: {name: eight_schools}
run: {chains: 4, draws: 100}
output: {file: run.h5}
"""
MANY = """\
model: {name: gaussian, dim: 60}
run: {chains: 2, draws: 50}
output: {file: many.h5}
"""
NARROW = """\
model: {name: gaussian, dim: 60}
run: {chains: 4, draws: 6000}
output: {file: narrow.h5}
"""
ENDLESS = """\
model: {name: gaussian, dim: 5}
sampler: {name: hmc, leapfrog_steps: 20000}
run: {chains: 4, warmup: 100, draws: 200000}
output: {file: long.h5}
"""


def at_terminal(columns, *command, until=None, **environment):
    """Exit status of the command and what it prints on a terminal; when that matches `until`, a
    Ctrl-C is typed."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update({"TERM": "xterm"} | environment)
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        os.execvp(command[0], list(map(str, command)))
    text = b""
    signal.alarm(int(LIMIT))  # which ends this test
    try:
        while piece := os.read(terminal, 65536):
            text += piece
            if until and re.search(until, text.decode(errors="replace")):
                os.write(terminal, b"\x03")
                until = None
    except OSError:
        pass  # the other end is closed
    signal.alarm(0)
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), text.decode().replace("\r\n", "\n")


def widest(text):
    return max(map(len, COLOUR.sub("", text).splitlines()))


def check_help():
    asked = [["--help"], ["run", "--help"], ["list"], ["list", "run"], ["list", "samplers", "hmc"]]
    for words in asked:
        plain = limited(EMASS, *words).stdout
        shown = {columns: at_terminal(columns, EMASS, *words)[1] for columns in WIDTHS}
        long = [columns for columns, text in shown.items() if widest(text) > columns]
        # All words are there, in their order, however they are broken into lines.
        lost = [columns for columns, text in shown.items() if text.split() != plain.split()]
        report(not long and not lost and widest(shown[200]) <= 120,
               f"emass {' '.join(words)} fits terminals", long, lost)


def check_table():
    made = limited(EMASS, "run", "run.yaml", "--quiet")
    plain = limited(EMASS, "summary", "run.h5").stdout
    report(made.returncode == 0 and "\033" not in plain and "r_hat" in plain, "a table in a pipe is plain",
           made.stderr)
    for columns in WIDTHS:
        _, text = at_terminal(columns, EMASS, "summary", "run.h5")
        bare = COLOUR.sub("", text)
        heads = [line.split() for line in bare.splitlines() if line.startswith("  ") and line.strip()]
        names = [line.split()[0] for line in bare.splitlines() if line.startswith("theta[Choate]")]
        report(widest(text) <= columns and sum(heads, []) == SUMMARY_COLUMNS and len(names) == len(heads),
               f"on {columns} columns all numbers are shown, in {len(heads)} panels", text)
    _, text = at_terminal(60, EMASS, "summary", "run.h5")
    report("\033[1m" in text, "titles are bold on a terminal")
    _, text = at_terminal(80, EMASS, "run", "many.yaml", "--progress", "none")
    bare = COLOUR.sub("", text)
    rows = [line for line in bare.splitlines() if line.startswith("theta[")]
    report(len(rows) == 2 * 40 and re.search("40 of 60 rows; .*emass summary many.h5 --all", " ".join(bare.split())) and widest(text) <= 80,
           "of many rows the end of a run shows 40 on a terminal, and says how to see all", text)
    _, text = at_terminal(200, EMASS, "summary", "many.h5", "--all")
    report(len(re.findall("^theta", text, re.M)) == 60 and "60 rows;" not in text, "all of them with --all", text)
    plain = limited(EMASS, "summary", "many.h5").stdout
    report(len(re.findall("^theta", plain, re.M)) == 60 and "rows;" not in plain, "and in a pipe", plain)
    for name, value in (("NO_COLOR", "1"), ("TERM", "dumb")):
        _, text = at_terminal(60, EMASS, "summary", "run.h5", **{name: value})
        report("\033" not in text and "r_hat" in text, f"no colours with {name}={value}")


def check_progress():
    for name, launch in (("one rank", [EMASS, "run"]), ("--ranks 2", [EMASS, "run", "--ranks", "2"]),
                         ("mpirun", ["mpirun", "-q", "-n", "2", EMASS, "run"])):
        status, text = at_terminal(100, *launch, "run.yaml", "--overwrite")
        bars = [piece for piece in text.split("\r") if "[=" in piece]
        report(status == 0 and bars and "converged" in text and "\033[1" in text and widest(bars[-1].split("\n")[0]) <= 100,
               f"a bar and a verdict in colour, {name}", status, text)
    logged = limited(EMASS, "run", "run.yaml", "--overwrite", "--ranks", "2")
    report("\r" not in logged.stderr and re.search(r"^20..-..-.. ..:..:.. sampling", logged.stderr, re.M)
           and "\033" not in logged.stderr + logged.stdout, "dated lines in a log, without colours", logged.stderr)
    _, text = at_terminal(80, "sh", "-c", f"mpirun -q -n 2 {EMASS} run run.yaml --overwrite > out.txt; cat -v out.txt")
    report("^[" not in text and "converged" in text, "none in a file that mpirun's ranks write to", text)


def check_narrow():
    """Without room a bar leaves out whole parts, never digits of a number."""
    part = r"R-hat (at least |>= )?\d+\.\d{3}|ESS (at most |<= )?\d+|divergences \d+|\S+ draws/s|left (at most |<= )?\d+ (s|min \d\d s|h \d\d min)"
    for columns in (44, 52, 60):
        _, text = at_terminal(columns, EMASS, "run", "narrow.yaml", "--overwrite")
        lines = [line.split("\n")[0] for line in text.split("\r") if re.match(r"(sampling|warmup) \d+/\d", line)]
        ends = [re.sub(r"^\w+ \d+/\d+ *(\[=*>? *\])?", "", line).strip() for line in lines]
        cut = [line for line, end in zip(lines, ends) if end and not re.fullmatch(f"({part})(  ({part}))*", end)]
        report(lines and any("ESS" in line for line in lines) and not cut and max(map(len, lines)) < columns, f"no number is cut in {columns} columns", *cut, *lines[-2:])


def check_waiting():
    """Something on the screen while a table is read, or a program translated, and then no more."""
    with open("rows.csv", "w") as out:
        out.write("1,0\n2,1\n3,0\n")
    with open("table.yaml", "w") as out:
        out.write("model: {name: logistic, data: rows.csv}\n")
    slow = {"EMASS_FAULT": "data-slow:0"}
    _, text = at_terminal(80, EMASS, "check", "table.yaml", **slow)
    before, _, after = text.rpartition("\r")
    report(re.search(r"loading \([1-9] s\)", before) and after.startswith("model:"), "what check waits for, on a terminal", text)


def check_interrupts():
    """Exit status 75, whoever got the signal."""
    for name, launch in (("one rank", []), ("--ranks 2", ["--ranks", "2"])):
        status, text = at_terminal(80, EMASS, "run", *launch, "long.yaml", "--overwrite", until=r"[1-9]/")
        report(status == 75 and "with a checkpoint" in text, f"Ctrl-C, {name}", status, text)
    # By the id of a rank, or of mpirun, which hands it on.
    noted = ["sh", "-c", 'echo $$ > id.${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-mpirun}}; exec "$@"', "sh"]
    two, one = ["mpirun", "-n", "2", *noted], [*noted, "mpirun", "-n", "1"]
    for name, launch, to, number in (("rank 0 of two", two, "id.0", signal.SIGINT),
                                     ("rank 1 of two", two, "id.1", signal.SIGINT),
                                     ("the mpirun of one", one, "id.mpirun", signal.SIGUSR1)):
        if os.path.exists("long.h5.checkpoint"):
            os.remove("long.h5.checkpoint")
        with subprocess.Popen(["timeout", "-k", "10", LIMIT, *launch, EMASS, "run", "long.yaml", "--overwrite"],
                              stderr=subprocess.PIPE, text=True) as run:
            for line in run.stderr:
                if re.search("[1-9]/", line):
                    break
            with open(to) as file:
                os.kill(int(file.read()), number)
            rest = run.stderr.read()
        report(run.returncode == 75 and "with a checkpoint" in rest and os.path.exists("long.h5.checkpoint"),
               f"an interrupt of {name}", run.returncode, rest)


def check_lost_rank():
    """One that is killed cannot speak."""
    path = os.path.realpath("lost.h5")
    with subprocess.Popen(["timeout", "-k", "10", LIMIT, EMASS, "run", "--output", path, "--ranks", "2", "long.yaml"],
                          stderr=subprocess.PIPE, text=True) as run:
        for line in run.stderr:
            if re.search("[1-9]/", line):
                break
        ranks = subprocess.check_output(["pgrep", "-f", f"^{EMASS} run --output {path} long.yaml"], text=True).split()
        os.kill(int(ranks[-1]), signal.SIGKILL)
        rest = run.stderr.read()
    # The status is that of mpirun: of MPICH's, the number of the signal.
    said = re.search(f"^emass: mpirun.* ended with status {run.returncode}: signal 9 .*--resume", rest, re.M)
    report(run.returncode in (137, 9) and said, "a rank is lost", run.returncode, rest)


def beside():
    return sorted(name for name in os.listdir() if name.startswith("run.h5"))


def check_leftovers():
    limited(EMASS, "run", "run.yaml", "--overwrite", "--quiet", "--set", "output.keep_checkpoint=true")
    report(beside() == ["run.h5", "run.h5.checkpoint"], "a checkpoint stays where it is asked for", beside())
    again = limited(EMASS, "run", "run.yaml", "--resume")
    report(beside() == ["run.h5"] and "nothing to do" in again.stderr, "and goes where it is not", beside())
    longer = limited(EMASS, "run", "run.yaml", "--resume", "--quiet", "--set", "run.draws=150")
    report("extending run.h5, a finished run of 100 draws, to 150" in longer.stderr
           and longer.returncode == 0 and beside() == ["run.h5"], "more draws are added to the file, which is said",
           longer.stderr)


with tempfile.TemporaryDirectory(prefix="emass-terminal-") as work:
    os.chdir(work)
    for file, text in (("run.yaml", CONFIG), ("long.yaml", ENDLESS), ("many.yaml", MANY), ("narrow.yaml", NARROW)):
        with open(file, "w") as out:
            out.write(text)
    check_help()
    check_table()
    check_progress()
    check_narrow()
    check_waiting()
    check_interrupts()
    check_lost_rank()
    check_leftovers()
finish()
