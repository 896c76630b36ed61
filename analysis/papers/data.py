"""Data of paper 003, as tables that emass reads: a generated regression, and Airbnb listings; and MNIST's
training data in two parts."""

import gzip
import os
import struct
from pathlib import Path

import h5py
import numpy as np
import pandas as pd

THETA = np.arange(5.0)  # of the generated regression
CORRELATED = np.array([[1, 0.9], [0.9, 1]])  # covariance of 003, Fig. 4


def make_tables(folder):
    if not (folder / "linear.h5").exists():
        make_linear(folder / "linear.h5")
    np.savetxt(folder / "correlated.csv", CORRELATED, "%g", ",")
    listings = Path(os.environ.get("EMASS_DATA", ""), "airbnb_buenos_aires", "train_test.csv.gz")
    if "EMASS_DATA" in os.environ and listings.exists() and not (folder / "airbnb.h5").exists():
        make_airbnb(pd.read_csv(listings), folder / "airbnb.h5")


def make_held_out(folder):
    """MNIST's training data without every sixth image, and these as a test; both files whole or none."""
    source, folder = Path(os.environ.get("EMASS_DATA", ""), "mnist"), folder / "held-out"
    if not (source / "train-images-idx3-ubyte.gz").exists() or (folder / "train-images-idx3-ubyte").exists():
        return
    folder.mkdir(exist_ok=True)
    for kind, sides in (("labels-idx1", ()), ("images-idx3", (28, 28))):  # the file asked for above comes last
        values = gzip.decompress((source / f"train-{kind}-ubyte.gz").read_bytes())
        values = np.frombuffer(values, np.uint8, offset=8 + 4 * len(sides)).reshape(-1, *sides)
        held = np.arange(len(values)) % 6 == 5
        for name, part in (("t10k", values[held]), ("train", values[~held])):
            header = struct.pack(f">{2 + len(sides)}i", 0x801 + len(sides), len(part), *sides)
            (folder / f"{name}-{kind}-ubyte").write_bytes(header + part.tobytes())


def make_linear(path):
    """10000 observations of 5 normal features, and a response with normal noise."""
    random = np.random.default_rng(3)
    X = random.normal(size=(10000, 5))
    y = X @ THETA + random.normal(size=10000)
    with h5py.File(path, "w") as file:
        file["table"] = np.column_stack([X, y])


def make_airbnb(listings, path):
    """Four tables, class1 to class4, of four fifths of the listings; the others are for a test."""
    label = listings["price"].to_numpy()
    X = features(listings.drop(columns=["id", "is_business_travel_ready", "price"]))
    order = np.random.default_rng(3).permutation(len(label))
    train, test = np.split(order, [len(order) * 4 // 5])
    with h5py.File(path, "w") as file:
        for c in range(1, 5):
            file[f"class{c}"] = np.column_stack([X[train], label[train] == c])
        file["test/X"], file["test/class"] = X[test], label[test]


def features(listings):
    """Numbers, of mean 0 and standard deviation 1: amounts by their logarithm, dates in days. Then
    a column of 0 and 1 for each word but the first of its kind."""
    words = [name for name in listings if listings[name].isin(["t", "f"]).all()]
    words += ["neighbourhood", "room_type", "bed_type", "cancellation_policy"]
    numbers = {}
    for name in listings.columns.difference(words):
        if name in ("last_review", "host_since"):
            days = pd.to_datetime(listings[name], format="%m/%d/%y") - pd.Timestamp("2020-01-01")
            numbers[name] = days.dt.days
        else:
            numbers[name] = np.log1p(listings[name])
    numbers = pd.DataFrame(numbers)
    dummies = pd.get_dummies(listings[words], drop_first=True)
    return np.column_stack([(numbers - numbers.mean()) / numbers.std(), dummies]).astype(float)
