#!/usr/bin/env python3
"""Models of Bambi, through PyMC: coefficients as those of the data, and predictions by Bambi from our draws.
TAP; $1: the build."""

import lib
from lib import report

lib.needs_front_ends("models of Bambi")
lib.use_package()

import bambi  # noqa: E402
import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402

import emass  # noqa: E402

N = 240
rng = np.random.default_rng(1)
frame = pd.DataFrame({"x": rng.normal(size=N), "g": np.repeat(list("abcdef"), N // 6)})
effects = dict(zip("abcdef", [0, 1, -1, 0.5, -0.5, 0]))
frame["y"] = 1 + 0.5 * frame.x + frame.g.map(effects) + rng.normal(size=N)

model = bambi.Model("y ~ x + (1|g)", frame)
model.build()
draws = emass.Model.from_pymc(model.backend.model).sample(chains=2, draws=300, seed=1, progress=False)
posterior = draws.posterior

# Least squares with an intercept for each group: with 40 rows in each, group effects move the slope by less than
# its own standard error.
design = np.column_stack([frame.x, pd.get_dummies(frame.g).to_numpy(float)])
slope = np.linalg.lstsq(design, frame.y, rcond=None)[0][0]
report(
    abs(float(posterior["x"].mean()) - slope) < float(posterior["x"].std()) / 2,
    "the slope is that of least squares, to half its standard error",
    posterior["x"].mean(),
    slope,
)
plain = bambi.Model("y ~ x", frame)  # predictions of group effects need a SciPy of the time of this Bambi
plain.build()
draws = emass.Model.from_pymc(plain.backend.model).sample(chains=2, draws=300, seed=1, progress=False)
predicted = plain.predict(draws, data=frame[:3], inplace=False).posterior["mu"]
try:
    text = ""
    emass.Model.from_pymc(plain).predict(frame[:3], draws)
except emass.Error as error:
    text = str(error)
report("found a frame with the columns x, g, y, expected one of pm.Data, of which the model has none (one of Bambi: its own" in text,
       "a frame for predict of emass: one line says which predict takes it", text)
report(predicted.shape == (2, 300, 3) and np.isfinite(predicted).all(), "Bambi predicts from the draws", predicted)
lib.finish()
