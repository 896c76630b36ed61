#!/usr/bin/env python3
"""The Python package of analysis/: it runs the program, opens what it wrote, tells errors and stops.
TAP; $1: the build."""
import contextlib
import gzip
import io
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import warnings

import lib
from lib import report

lib.needs_packages("the Python package")
warnings.simplefilter("ignore")
os.environ["EMASS"] = lib.EMASS
sys.path.insert(0, os.path.join(lib.ROOT, "analysis"))

import h5py  # noqa: E402
import numpy as np  # noqa: E402

import emass  # noqa: E402

SCHOOLS = {"model": {"name": "eight_schools"}, "run": {"chains": 3, "draws": 100}}


def raises(kind, text, call):
    try:
        call()
    except kind as error:
        return text in str(error)
    return False


def check_runs():
    data = emass.run(SCHOOLS, ranks=2, settings={"run.seed": 4}, progress=False)
    report(data.posterior.theta.shape == (3, 100, 8) and data.posterior.attrs is not None
           and list(data.posterior.school.values)[-1] == "Mt. Hermon", "a dict, and InferenceData of it")
    report(os.listdir() == [], "nothing is left behind", os.listdir())
    with open("schools.yaml", "w") as file:
        file.write("model: {name: eight_schools}\nrun: {chains: 3, draws: 100, seed: 4}\n")
    again = emass.run("schools.yaml", ranks=1, output="schools.h5", progress=False)
    report(np.array_equal(again.posterior.theta, data.posterior.theta) and os.path.exists("schools.h5"),
           "a file, on other ranks: the same draws")
    table = emass.summary("schools.h5", ["mu", "theta*"], percentiles=(10, 90))
    report([c for c in table.columns if c not in ("10%", "90%")] == [c for c in lib.SUMMARY_COLUMNS if "%" not in c]
           and {"10%", "90%"} < set(table.columns) and len(table) == 17 and abs(table.loc["mu", "mean"] - float(again.posterior.mu.mean())) < 1e-12,
           "a summary of a file", table)
    of_data = emass.summary(data, ["mu", "theta*"], percentiles=(10, 90))
    report(np.allclose(of_data, table, rtol=1e-12, equal_nan=True), "and of draws in memory")
    emass.run("schools.yaml", ranks=1, output="more.h5", settings={"run.seed": 5}, progress=False)
    merged = emass.merge("both.h5", ["schools.h5", "more.h5"])
    report(merged.posterior.sizes["chain"] == 6 and
           emass.summary(["schools.h5", "more.h5"]).equals(emass.summary("both.h5")), "two files as one, and merged")
    page = emass.report("schools.h5")
    report(page.name == "schools.html" and "eight_schools" in page.read_text(), "a report")


def check_ranks():
    """Without `ranks` no more of them than the chains need."""
    few = {**SCHOOLS, "run": {"chains": 2, "draws": 50}}
    with open("one.yaml", "w") as file:
        file.write("model: {name: eight_schools}\nrun.chains: 1\nrun: {draws: 50}\n")
    draws = [emass.run(few, progress=False), emass.run("one.yaml", progress=False), emass.run(SCHOOLS, settings={"run.chains": 1}, progress=False)]
    report([one.posterior.sizes["chain"] for one in draws] == [2, 1, 1], "fewer chains than 4, by a config, its file and a setting")
    report(raises(emass.Error, "number of ranks: found 4 for 2 chains", lambda: emass.run(few, ranks=4, progress=False)), "ranks that are asked for")
    np.savetxt("s.csv", np.c_[np.arange(30.0), np.arange(30) % 2], "%g", ",", header="x,y", comments="")
    shards = {"model": {"name": "logistic", "data": "s.csv"}, "run": {"chains": 1, "shards": 2, "draws": 50}}
    report(emass.run(shards, progress=False).posterior.sizes["chain"] == 1, "one chain on two shards")


def check_arrays():
    """Data of one's own by file, from the current folder; arrays in the config."""
    np.savetxt("t.csv", np.c_[np.arange(30.0), np.arange(30) % 2], "%g", ",", header="x,y", comments="")
    config = {"model": {"name": "logistic", "data": "t.csv"}, "run": {"chains": np.int64(2), "draws": 50}}
    data = emass.run(config, ranks=1, progress=False)
    report(data.posterior.beta.sizes["chain"] == 2, "a table in the current folder")
    config = {"model": {"name": "eight_schools", "y": np.arange(8.0), "sigma": np.full(8, 10.0)}, "run": {"draws": 20}}
    report(np.array_equal(emass.run(config, ranks=1, progress=False).observed_data.y, np.arange(8)), "arrays")


def check_keeps():
    """The file that the config, or settings, name."""
    emass.run({**SCHOOLS, "output": {"file": "named.h5"}}, ranks=1, progress=False)
    with open("named.yaml", "w") as file:
        file.write("model: {name: eight_schools}\nrun: {chains: 3, draws: 100}\noutput:\n  file: ${WHERE}/by file.h5\n")
    os.environ["WHERE"] = os.getcwd()
    by_file = emass.run("named.yaml", ranks=1, progress=False)
    emass.run("named.yaml", ranks=1, settings={"output.file": "set.h5"}, progress=False)
    emass.run("named.yaml", ranks=1, output="given.h5", progress=False)
    here = [name for name in ("named.h5", "by file.h5", "set.h5", "given.h5") if os.path.exists(name)]
    report(len(here) == 4 and by_file.posterior.theta.shape == (3, 100, 8), "the file that the config names is kept", here)
    report(raises(emass.Error, "exists: give overwrite=True or another output, or go on by emass.resume",
                  lambda: emass.run("named.yaml", ranks=1, progress=False)), "nor replaced unasked")
    with contextlib.redirect_stderr(io.StringIO()) as said:
        emass.run(SCHOOLS, ranks=1)
    report("not converged: worst R-hat" in said.getvalue(), "the verdict is said behind the progress", said.getvalue())
    again = emass.run("named.yaml", ranks=1, resume=True, progress=False)
    report(np.array_equal(again.posterior.theta, by_file.posterior.theta), "resume=True goes on with it")


def check_errors():
    wrong = {"model": {"name": "eight_schols"}}
    report(raises(emass.Error, "config: unknown model 'eight_schols'; did you mean eight_schools?", lambda: emass.run(wrong, ranks=1, progress=False)),
           "an error is what emass says")
    report(raises(emass.Error, "exists: give", lambda: emass.run(
        "schools.yaml", ranks=1, output="schools.h5", progress=False)),
           "an output that is there is not replaced")
    long = {"model": {"name": "gaussian", "dim": 5}, "sampler": {"leapfrog_steps": 20000}, "run": {"draws": 200000}}
    report(raises(emass.Stopped, "with a checkpoint", lambda: emass.run(
        long, output="long.h5", settings={"stop.max_time": "0s"}, progress=False)), "the time limit is a stop")
    report(raises(emass.Stopped, "nothing is kept: name an output", lambda: emass.run(
        long, settings={"stop.max_time": "0s"}, progress=False)), "one without an output says that nothing is kept")
    program = ("import emass, sys\ntry: emass.run(%r, ranks=1, output='cut.h5')\n"
               "except emass.Stopped as stop: print('stopped', stop.status)" % long)
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env=dict(os.environ, PYTHONPATH=os.path.join(lib.ROOT, "analysis"))) as child:
        first = child.stderr.readline()
        while "/" not in first:
            first = child.stderr.readline()
        time.sleep(0.1)
        child.send_signal(2)
        said = child.stdout.read()
    report("warmup" in first and "stopped 75" in said and os.path.exists("cut.h5.checkpoint"),
           "progress is shown, an interrupt leaves a checkpoint", first, said)


def check_not_installed(folder):
    """A package without the program: the error says what to do."""
    shutil.copytree(os.path.join(lib.ROOT, "analysis", "emass"), os.path.join(folder, "alone", "emass"))
    bare = {name: value for name, value in os.environ.items() if not name.startswith("EMASS") and name != "LD_LIBRARY_PATH"}
    done = subprocess.run([sys.executable, "-c", "import emass; emass.Model.built_in('eight_schools').sample(progress=False)"],
                          capture_output=True, text=True, check=False, cwd=folder,
                          env=dict(bare, PYTHONPATH=os.path.join(folder, "alone"), PATH="/nowhere"))
    report(done.returncode == 1 and "set EMASS to the path of the program" in done.stderr,
           "the error where no program is found", done.stderr)


def check_readers(model):
    """What pyLDAvis.prepare refuses or divides by, with an empty document; and the programs themselves."""
    given = model.to_pyldavis()
    topics, mixtures = given["topic_term_dists"], given["doc_topic_dists"]
    report(all(np.isfinite(x).all() and (x >= 0).all() and np.allclose(x.sum(axis=1), 1, rtol=1e-6) for x in (topics, mixtures)) and
           len(mixtures) == len(given["doc_lengths"]) == 40 and (given["doc_lengths"] > 0).all() and
           topics.shape[1] == len(given["vocab"]) == len(given["term_frequency"]) and (given["term_frequency"] > 0).all(),
           "distributions of pyLDAvis sum to one, and no document is empty", given)
    try:
        import pyLDAvis
        prepared = pyLDAvis.prepare(**given, n_jobs=1)
    except ImportError:
        lib.skip("pyLDAvis.prepare reads them", "pyLDAvis is not installed")
    else:
        report(len(prepared.topic_coordinates) == 2 and abs(prepared.topic_coordinates.Freq.sum() - 100) < 1e-6,
               "pyLDAvis.prepare reads them", prepared.topic_coordinates)
    try:
        found = model.to_gensim().get_topics()
    except ImportError:
        lib.skip("gensim has the same topics", "gensim is not installed")
    else:
        report(np.allclose(found, model.topic_word, atol=1e-5), "gensim has the same topics", found)


def check_topics():
    random = np.random.default_rng(1)
    with gzip.open("c.ldac.gz", "wt") as file:
        for d in range(40):
            words = sorted(random.choice(10, 6, replace=False) + 10 * (d % 2))
            file.write("6 " + " ".join(f"{w}:1" for w in words) + "\n")
    with open("words.txt", "w") as file:
        file.write("\n".join(f"w{i}" for i in range(20)) + "\n")
    emass.run({"model": {"name": "lda", "data": "c.ldac.gz", "vocabulary": "words.txt", "topics": 2},
               "run": {"chains": 2, "warmup": 50, "draws": 20}}, ranks=1, output="c.h5", progress=False)
    table = emass.topics("c.h5", words=4)
    report(len(table) == 2 and abs(table.share.sum() - 1) < 1e-3 and all(len(words) == 4 for words in table.words),
           "topics", table)
    model = emass.read_topics("c.h5", "c.ldac.gz")
    lda, scenic = model.to_pyldavis(), model.to_pycistopic()
    report(model.topic_word.shape == (2, 20) and np.allclose(model.topic_word.sum(axis=1), 1, atol=1e-4) and
           model.document_topic.shape == (40, 2) and np.allclose(model.document_topic.sum(axis=1), 1, atol=1e-4),
           "topics and mixtures as tables", model)
    report(lda["doc_lengths"].tolist() == [6] * 40 and lda["term_frequency"].sum() == 240 and lda["vocab"][3] == "w3" and
           lda["doc_topic_dists"].shape == (40, 2) and lda["topic_term_dists"].shape == (2, 20), "for pyLDAvis", lda)
    report(list(scenic["cell_topic"].index) == ["Topic1", "Topic2"] and scenic["topic_region"].shape == (20, 2), "for pycisTopic", scenic)
    emass.write_corpus("again.h5", model.counts, list(model.topic_word.columns), [f"d{i}" for i in range(40)])
    emass.write_corpus("bags.h5", [list(zip(row.nonzero()[0].tolist(), row[row > 0].tolist())) for row in model.counts.toarray()],
                       dict(enumerate(model.topic_word.columns)))
    again = [emass.read_topics("c.h5", file).document_topic for file in ("again.h5", "bags.h5")]
    report(all(np.array_equal(found, model.document_topic) for found in again) and list(again[0].index)[:2] == ["d0", "d1"],
           "a corpus of a sparse matrix, and of bags of words, with names", again)
    from scipy.sparse import coo_array

    twice = coo_array((np.array([200, 200], np.uint8), ([0, 0], [1, 1])), shape=(1, 3))
    emass.write_corpus("twice.h5", twice, ["a", "b", "c"])
    with h5py.File("twice.h5") as file:
        report(file["table/value"][:].tolist() == [400], "entries of a byte are summed as wide numbers", file["table/value"][:])
    with open("empty.ldac", "w") as file:
        file.write("0\n" + gzip.open("c.ldac.gz", "rt").read())
    check_readers(emass.read_topics("c.h5", "empty.ldac"))
    report(raises(emass.Error, "expected those of 40 documents x 20 words", lambda: emass.write_corpus("no.h5", model.counts, ["a"])),
           "words that are not those of the matrix")
    report(raises(emass.Error, "found no documents", emass.read_topics("c.h5").to_pyldavis), "which need documents")
    check_refused_counts()


def check_refused_counts():
    """Each with a line, and without a file that is left."""
    from scipy.sparse import csr_array

    words, good = ["a", "b", "c"], csr_array(np.array([[1, 0, 2], [0, 1, 0]]))
    half, outside, descending = good * 0.5, good.copy(), good.copy()
    outside.indices[2] = 9
    descending.indptr[:] = [0, 5, 3]
    for text, given in (
        ("found 0.5 for word 0 of document 0, expected a count", (half, words)),
        ("found -1 for word 0 of document 0", (-good, words)),
        ("found nan for word 0 of document 0", (half * np.nan, words)),
        ("found 100000000 for word 0 of document 0", (good * 10**8, words)),
        ("found 1j for word 0", (good * 1j, words)),
        ("indices must be < 3", (outside, words)),
        ("indptr must be a non-decreasing sequence", (descending, words)),
        ("found no words in 2 documents", (good * 0, words)),
        ("found a matrix of 1 dimensions", (np.ones(3), words)),
        ("found no matrix of counts", (np.array([["x", 1, 2]], object), words)),
        ("found no matrix of counts", ([[(7, 1)]], words)),
        ("found the word 'a' twice", (good, ["a", "a", "b"])),
        ("found 'a\\x00' as word 0", (good, ["a\0", "b", "c"])),
        ("found 1 as word 1, expected a text", (good, ["a", 1, "c"])),
        ("found '\\udce9' as word 0", (good, ["\udce9", "b", "c"])),
        ("found no list of words and no Dictionary", (good, {0: "a", 1: "b", 5: "c"})),
        ("found 7 as document 0", (good, words, [7, 8])),
    ):
        report(raises(emass.Error, text, lambda given=given: emass.write_corpus("no.h5", *given)), f"counts: {text}")
    open("mine.h5", "w").close()
    report(raises(emass.Error, "mine.h5: found a file", lambda: emass.write_corpus("mine.h5", good, words)), "a file that exists")
    report(raises(emass.Error, "cannot be written", lambda: emass.write_corpus("none/no.h5", good, words)), "a folder that does not")
    report(not [name for name in os.listdir(".") if name.startswith("no.h5")], "and no file is left", os.listdir("."))
    check_at_once(words)


def check_at_once(words):
    """Calls in threads with one name, of which one gets it. Its file is complete, and is its own."""
    def write(number, failed):
        try:
            emass.write_corpus(f"shared{turn}.h5", np.full((200, len(words)), number + 1), words)
        except emass.Error as error:
            failed[number] = str(error)

    for turn in range(8):
        failed = {}
        writers = [threading.Thread(target=write, args=(number, failed)) for number in range(4)]
        for one in writers:
            one.start()
        for one in writers:
            one.join()
        [mine] = set(range(4)) - set(failed) if len(failed) == 3 else [-1]
        with h5py.File(f"shared{turn}.h5") as file:
            kept = set(file["table/value"][:])
        if kept != {mine + 1} or not all("found a file, expected a new name" in text for text in failed.values()):
            break
    report(len(failed) == 3 and kept == {mine + 1}, "several writers of one name: one has it, the others are told", failed, kept)
    report(not [name for name in os.listdir(".") if name.endswith(".part")], "and leave nothing", os.listdir("."))


def check_installs(folder):
    """As pip does it; what builds packages comes from PyPI."""
    source = os.path.join(folder, "source")
    shutil.copytree(os.path.join(lib.ROOT, "analysis"), source, ignore=shutil.ignore_patterns("venv", "build", "__pycache__"))
    done = lib.limited(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check", "--target",
                       os.path.join(folder, "into"), source)
    if done.returncode and "setuptools" in done.stderr:
        lib.skip("pip install ./analysis", "no setuptools to be had")
        return
    into = os.listdir(os.path.join(folder, "into")) if done.returncode == 0 else done.stderr
    report("emass" in into and "py.typed" in os.listdir(os.path.join(folder, "into", "emass")), "pip install ./analysis", into)


with tempfile.TemporaryDirectory(prefix="emass-python-") as work:
    os.mkdir(os.path.join(work, "here"))
    os.chdir(os.path.join(work, "here"))
    check_runs()
    check_ranks()
    check_arrays()
    check_keeps()
    check_errors()
    check_topics()
    check_installs(work)
    check_not_installed(work)
lib.finish()
