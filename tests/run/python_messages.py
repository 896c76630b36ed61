#!/usr/bin/env python3
"""What the Python package says: why positions are rejected, in the terms of Python. TAP; $1: the build."""
import contextlib
import io
import os
import sys
import tempfile
import warnings

import lib
from lib import report

lib.needs_packages("messages of the Python package")
warnings.simplefilter("ignore")
os.environ["EMASS"] = lib.EMASS
os.environ["EMASS_LIBRARY"] = os.path.join(lib.BUILD, "libemass.so.0")
sys.path.insert(0, os.path.join(lib.ROOT, "analysis"))

import numpy as np  # noqa: E402

import emass  # noqa: E402

SHORT = {"chains": 2, "draws": 60}
QUIET = {**SHORT, "progress": False}


def said(call, kind=emass.Error):
    try:
        call()
    except kind as error:
        return str(error)
    return "no error"


def printed(call):
    """What it writes on standard error from Python."""
    with contextlib.redirect_stderr(io.StringIO()) as text:
        call()
    return text.getvalue()


def raises(x):
    return 1 / 0


def half(x):
    if x[0] > 0.5:
        raise ValueError("no value there")
    return -x @ x / 2


def check_rejections():
    """A function's own words, in the error or the note, with and without a gradient."""
    for gradient in (None, True):
        model = emass.Model.from_function(raises, dim=2, gradient=gradient)
        texts = [said(lambda: model.sample(**QUIET)), said(model.check), said(model.check)]
        report(all("ZeroDivisionError: division by zero" in text and "\n" not in text for text in texts) and
               "(see model.check())" in texts[0], f"an exception that stops the start; gradient={gradient}", *texts)
    text = printed(lambda: emass.Model.from_function(half, dim=2).sample(**SHORT))
    report("emass: note: the log density failed in " in text and "rejections; the first on this rank: ValueError: no value there" in text,
           "without a gradient: how often, and the first reason", text)
    text = printed(lambda: emass.Model.from_function(lambda x: (half(x), -x), dim=2, gradient=True).sample(**SHORT))
    report("emass: note: the model rejected " in text and "ValueError: no value there" in text, "with a gradient too", text)
    for value, slope, words in ((np.nan, 0.0, "the log density is nan"), (0.0, np.nan, "the gradient is not finite")):
        model = emass.Model.from_function(lambda x: (value, slope * x), dim=2, gradient=True)
        texts = [said(lambda: model.sample(**QUIET)), said(model.check)]
        report(all(text.endswith(words) for text in texts), f"no exception: {words}", *texts)


with tempfile.TemporaryDirectory(prefix="emass-python-") as work:
    os.chdir(work)
    check_rejections()
lib.finish()
