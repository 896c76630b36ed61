#!/usr/bin/env python3
"""What `emass summary` makes of HDF5 files that are meant to harm: it prints nothing that a terminal
obeys, touches no other file, and ends soon, with little memory. TAP; $1: the build.

Memory is bounded by a limit on the address space of the process; time by its processor time, of
which a busy machine takes nothing.
"""
import os
import resource
import subprocess
import tempfile
import time

import lib
from lib import EMASS, report

lib.needs_packages("hostile files")

MOST_BYTES = 1 << 30


def slowness():
    """How many times a processor of two gigahertz or so this one takes, of its own time."""
    start = time.process_time()
    sum(i * i for i in range(5000000))
    return (time.process_time() - start) / 0.5


MOST_SECONDS = round(8 * max(1, slowness()))


def limit():
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS + 2))
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, MOST_BYTES))


def summary(path, *options, command="summary"):
    command = [EMASS, command, path, *options]
    try:
        return subprocess.run(command, capture_output=True, timeout=int(lib.LIMIT), preexec_fn=limit)
    except subprocess.TimeoutExpired:  # it waits for something: nothing here takes that long
        return subprocess.CompletedProcess(command, -1, b"", b"waits for ever")


def refuses(path, what, reason, *options):
    """One line, status 2, naming file and reason."""
    result = summary(path, *options)
    text = result.stderr.decode(errors="replace")
    report(result.returncode == 2 and not result.stdout and text.count("\n") == 1
           and path in text and reason in text, f"refused: {what}", f"{result.returncode}: {text}")


def ends(path, what, command="summary"):
    """With a table or a message, within the limits."""
    result = summary(path, command=command)
    report(result.returncode in (0, 2), f"ends: {what}, {os.path.getsize(path) >> 10} KB",
           f"{result.returncode}: {result.stderr.decode(errors='replace')[:500]}")


class Draws:
    """A file with a group of draws, whose axes have coordinates."""

    def __init__(self, path, chains=2, draws=50):
        import h5py

        self.path, self.shape = path, (chains, draws)
        self.file = h5py.File(path, "w", libver="earliest")
        self.group = self.file.create_group("posterior")
        for name, n in (("chain", chains), ("draw", draws)):
            self.scale(name, data=range(n) if n < 1 << 16 else None, shape=(n,), dtype="i8",
                       chunks=None if n < 1 << 16 else (1 << 16,))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()

    def scale(self, name, **what):
        import numpy as np

        if "data" in what and what["data"] is not None:
            what["data"] = np.asarray(what["data"], what.get("dtype"))
        self.group.create_dataset(name, **what).make_scale(name)

    def attach(self, name, *axes):
        variable = self.group[name]
        for i, axis in enumerate(("chain", "draw") + axes):
            if axis:
                variable.dims[i].attach_scale(self.group[axis])

    def add(self, name, *extents, axes=(), **what):
        what.setdefault("dtype", "f8")
        self.group.create_dataset(name, shape=self.shape + extents, **what)
        self.attach(name, *axes)


def look_at_names(folder):
    import h5py
    import numpy as np

    path = os.path.join(folder, "names.h5")
    labels = ["plain", "red\x1b[31m", "row\nforged  1  2  3", "c1\u009b2J", "bidi\u202etxt", "\u8a9e\u8a9e", "e\u0301", "\u00e9t\u00e9"]
    shown = ["plain", r"red\x1b[31m", r"row\nforged  1  2  3", r"c1\u009b2J", r"bidi\u202etxt", "\u8a9e\u8a9e", "e\u0301", "\u00e9t\u00e9", r"\xff\xfe"]
    with Draws(path) as d:
        text = np.array([x.encode() for x in labels] + [b"\xff\xfe"], dtype="S40")
        d.scale("word", data=np.frombuffer(text.tobytes(), "S1").reshape(len(text), 40), dtype="S1")
        d.add("theta", len(text), axes=("word",), data=np.random.default_rng(1).normal(size=(2, 50, len(text))))
        d.scale("vlen", data=labels[:3], dtype=h5py.string_dtype())
        d.add("mu\x1b]0;title\x07", 3, axes=("vlen",), data=np.random.default_rng(2).normal(size=(2, 50, 3)))
        d.file.attrs["complete"] = 1
    for options in [(), ("--csv",)]:
        result = summary(path, *options)
        out = result.stdout + result.stderr
        text = out.decode(errors="replace")
        report(result.returncode == 0 and not any(c < 0x20 and c != 0x0a or c == 0x7f for c in out)
               and not set(text) & set("\u009b\u202e"), f"names: no control characters {options}", text)
        report(all(f"theta[{s}]" in text for s in shown) and r"mu\x1b]0;title\x07[plain]" in text,
               f"names: escaped, other scripts kept {options}", text)
    lines = summary(path).stdout.decode(errors="replace").splitlines()[1:14]
    wide = {line: len(line) + line.count("\u8a9e") - line.count("\u0301") for line in lines}
    report(len(lines) == 13 and len(set(wide.values())) == 1, "names: columns are aligned", "\n".join(lines))
    result = summary(path, "--var", "theta[row\\nforged  1  2  3]")
    report(result.returncode == 0 and b"forged" in result.stdout, "names: --var takes what is printed")


def look_at_outside(folder):
    import h5py

    def at(name):
        return os.path.join(folder, name)

    os.mkfifo(at("fifo"))
    os.mkfifo(at("fifo.h5"))
    refuses(at("fifo"), "a FIFO", "found a FIFO")
    refuses("/dev/zero", "a device", "found a device")
    refuses(folder, "a folder", "found a folder")
    with Draws(at("other.h5")) as d:
        d.add("mu")
    for secret in ("/etc/passwd", at("fifo")):
        with Draws(at("external.h5")) as d:
            d.add("mu", external=[(secret, 0, h5py.h5f.UNLIMITED)])
        refuses(at("external.h5"), f"external storage in {os.path.basename(secret)}", "outside the file")
    for source in ("other.h5", "fifo.h5"):
        with Draws(at("virtual.h5")) as d:
            layout = h5py.VirtualLayout(shape=d.shape, dtype="f8")
            layout[...] = h5py.VirtualSource(at(source), "posterior/mu", shape=d.shape)
            d.group.create_virtual_dataset("mu", layout)
            d.attach("mu")
        refuses(at("virtual.h5"), f"a virtual dataset of {source}", "virtual")
        with Draws(at("link.h5")) as d:
            d.group["mu"] = h5py.ExternalLink(at(source), "/posterior/mu")
        refuses(at("link.h5"), f"an external link to {source}", "an external link")
        with h5py.File(at("group.h5"), "w") as file:
            file["posterior"] = h5py.ExternalLink(at(source), "/posterior")
        refuses(at("group.h5"), f"a group in {source}", "an external link")
        with h5py.File(at("nested.h5"), "w") as file:
            file["a"] = h5py.ExternalLink(at(source), "/")
        refuses(at("nested.h5"), f"a way through {source}", "an external link", "--group", "a/posterior")
        with Draws(at("stats.h5")) as d:
            d.add("mu")
            d.file["sample_stats"] = h5py.ExternalLink(at(source), "/posterior")
        ends(at("stats.h5"), f"statistics in {source}")
        with Draws(at("running.h5")) as d:
            d.add("mu")
            d.file.attrs["complete"] = 0
            d.file["sample_stats"] = h5py.ExternalLink(at(source), "/posterior")
        refuses(at("running.h5"), f"an unfinished run with statistics in {source}", "an external link")
    with Draws(at("soft.h5")) as d:
        d.add("mu")
        d.group["alias"] = h5py.SoftLink("/posterior/mu")
    refuses(at("soft.h5"), "a soft link", "a soft link")
    with Draws(at("axes.h5")) as d:
        d.add("x", *[1] * 12)
    refuses(at("axes.h5"), "more axes than there can be", "has 14 axes, expected at most 10")
    with Draws(at("scale.h5")) as d:
        d.scale("word", shape=(3,), dtype="i8", external=[(at("fifo"), 0, h5py.h5f.UNLIMITED)])
        d.add("theta", 3, axes=("word",))
    refuses(at("scale.h5"), "a coordinate outside", "outside the file")


def look_at_claims(folder):
    import h5py
    import numpy as np

    def file(name, **size):
        return Draws(os.path.join(folder, name + ".h5"), **size)

    zero = np.zeros
    with file("chains", chains=1 << 20, draws=1 << 20) as d:
        d.add("mu", chunks=(1, 1 << 20))
    refuses(d.path, "extents that nothing is stored of", "more than the")
    with file("rows") as d:
        d.add("theta", 1 << 30, chunks=(1, 1, 1 << 16))
    refuses(d.path, "a thousand million rows", "more than the")
    with file("many", draws=10000) as d:
        for i in range(100):
            d.add(f"x{i}", 50, chunks=(1, 100, 50))
    refuses(d.path, "many variables that nothing is stored of", "more than the")
    with file("links", draws=10000) as d:
        d.group.create_dataset("x0", data=np.random.default_rng(1).normal(size=(2, 10000)))
        d.attach("x0")
        for i in range(1, 500):
            d.group[f"x{i}"] = d.group["x0"]
    refuses(d.path, "one variable under 500 names", "more than the")
    with file("bomb", draws=1 << 20) as d:
        d.add("mu", chunks=(1, 1 << 20), compression="gzip", compression_opts=9, data=zero((2, 1 << 20)))
    ends(d.path, "zeros that deflate compresses a thousandfold")
    with file("elements", draws=1000) as d:
        d.add("mu", 4000, chunks=(2, 50, 4000), compression="gzip", data=zero((2, 1000, 4000)))
    ends(d.path, "4000 elements in every chunk", command="report")
    with file("axis", chains=1, draws=4) as d:
        d.add("theta", 1 << 14, 1, chunks=(1, 4, 1 << 14, 1), compression="gzip", data=zero((1, 4, 1 << 14, 1)))
    ends(d.path, "one chunk for all elements, with a last axis of one")
    with file("twice", draws=1000) as d:
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((2, 1000))
        plist.set_deflate(9)
        plist.set_deflate(9)
        h5py.h5d.create(d.group.id, b"mu", h5py.h5t.NATIVE_DOUBLE, h5py.h5s.create_simple((2, 1000)), plist)
        d.attach("mu")
    refuses(d.path, "deflated twice", "compressed twice")
    with file("chunk", draws=10) as d:
        d.add("mu", chunks=(1 << 14, 1 << 14), maxshape=(None, None))
    refuses(d.path, "a chunk of 2 GB", "chunks larger")
    with file("labels") as d:
        d.scale("word", shape=(1 << 14, 1 << 20), dtype="S1", chunks=(1, 1 << 20))
        d.add("theta", 1 << 14, axes=("word",), chunks=(1, 1, 1 << 14))
    refuses(d.path, "labels of 16 GB that nothing is stored of", "more than the")
    with file("same", draws=1) as d:
        d.scale("word", shape=(4096,), dtype=h5py.string_dtype(), chunks=(4096,))
        d.group["word"][:] = ["x" * 100000] + [""] * 4095
        raw_id = d.group["word"].id
        d.file.flush()
        _, raw = raw_id.read_direct_chunk((0,))
        raw_id.write_direct_chunk((0,), raw[:16] * 4096)
        d.add("theta", 4096, axes=("word",))
    refuses(d.path, "one long text as 4096 labels", "labels")
    with file("nothing") as d:
        d.add("theta", 0, 1 << 40, axes=(), chunks=(1, 1, 1, 1), maxshape=(None, None, None, None))
    ends(d.path, "an axis of none beside one of 2^40")
    with file("wide", draws=1) as d:
        d.add("theta", 90000, data=zero((2, 1, 90000)), compression="gzip")
    ends(d.path, "as many rows as there may be")
    with file("small", draws=4) as d:
        for i in range(300):
            d.add(f"x{i}")
    ends(d.path, "many small variables")
    path = os.path.join(folder, "deep.h5")
    with h5py.File(path, "w") as f:
        group = f
        for _ in range(1000):
            group = group.create_group("a")
        group["back"] = f["/"]
    refuses(path, "groups nested a thousand deep, and a ring", "no group posterior")
    refuses(path, "a long way through them", "no group", "--group", "a/" * 900 + "b")
    with file("compound") as d:
        d.group.create_dataset("mu", shape=d.shape, dtype=[("a", "f8", (1 << 10,))], chunks=(1, 1))
        d.attach("mu")
    refuses(d.path, "compound values", "no (chain, draw, ...) variable")


def look_at_undefined(folder):
    import numpy as np

    with Draws(os.path.join(folder, "signs.h5"), draws=100) as d:
        d.add("constant", data=np.ones((2, 100)))
        d.add("sign", data=np.where(np.arange(200) % 3 < 1, -1.0, 1).reshape(2, 100))
        d.add("even", data=np.where(np.arange(200) % 2 < 1, -1.0, 1).reshape(2, 100))
    text = summary(d.path, "--csv").stdout.decode()
    report("nan" in text and "-nan" not in text, "what is undefined has no sign", text)


for look in look_at_names, look_at_outside, look_at_claims, look_at_undefined:
    with tempfile.TemporaryDirectory() as work:
        look(work)
lib.finish()
