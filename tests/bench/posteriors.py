"""Posteriors of posteriordb: programs, data and reference draws."""

import csv
import json
import lzma
import math
import os
import pathlib
import sys
import zipfile


class Posterior:
    """A program, its data, and what its reference draws say, if there are any."""

    def __init__(self, name, program, data, reference):
        self.name = name
        self.program = program
        self.data = data
        self.reference = json.loads(reference.read_text()) if reference else None


def main_posteriors(folder):
    for path in sorted(folder.glob("*.stan")):
        reference = path.with_suffix(".ref.json")
        if reference.exists():
            yield Posterior(path.stem, path, path.with_suffix(".json"), reference)


def more_posteriors(folder, only, unpacked):
    """Those that have reference draws, or were asked for (only None: all); their data are written to the folder
    `unpacked`."""
    table = folder / "posteriors.csv"
    references = {path.name.removesuffix(".ref.json"): path for path in folder.rglob("*.ref.json")}
    with table.open() if table.exists() else open(os.devnull) as file:
        for row in csv.DictReader(file):
            name = row["posterior"]
            if only is None or name in references or name in only:
                data = pathlib.Path(unpacked, f"{row['data']}.json")
                with lzma.open(folder / "data" / f"{row['data']}.json.xz") as packed:
                    data.write_bytes(packed.read())
                yield Posterior(name, folder / "models" / f"{row['model']}.stan", data, references.get(name))


def read_zipped(path):
    with zipfile.ZipFile(path) as archive:
        return archive.read(archive.namelist()[0])


def known_of(draws):
    """What a checkout's reference draws, a dictionary of parameters for each chain, say."""
    out = {}
    for name in draws[0]:
        x = [value for chain in draws for value in chain[name]]
        mean = math.fsum(x) / len(x)
        out[name] = {"mean": mean, "sd": math.sqrt(math.fsum((v - mean) ** 2 for v in x) / (len(x) - 1))}
    return {"parameters": out, "reference_draws": sum(len(next(iter(chain.values()))) for chain in draws)}


def checkout_posteriors(folder, unpacked):
    """Those of a checkout of posteriordb that have a Stan program and data."""
    for path in sorted(folder.glob("posteriors/*.json")):
        said = json.loads(path.read_text())
        program = folder / "models" / "stan" / f"{said['model_name']}.stan"
        packed = folder / "data" / "data" / f"{said['data_name']}.json.zip"
        draws = folder / "reference_posteriors" / "draws" / "draws" / f"{said.get('reference_posterior_name')}.json.zip"
        if program.exists() and packed.exists():
            data = pathlib.Path(unpacked, f"{said['data_name']}.json")
            data.write_bytes(read_zipped(packed))
            found = Posterior(path.stem, program, data, None)
            found.reference = known_of(json.loads(read_zipped(draws))) if draws.exists() else None
            yield found


def find_posteriors(folder, only, unpacked, everything=False):
    """Of a folder as EMASS_DATA has it, or of a checkout, all of which is taken. `everything`: those without reference
    draws, too."""
    if (folder / "posterior_database").exists():
        folder = folder / "posterior_database"
    if (folder / "posteriors").is_dir():
        found = [*checkout_posteriors(folder, unpacked)]
    else:
        found = [*main_posteriors(folder), *more_posteriors(folder / "more", None if everything else only, unpacked)]
    found = [p for p in found if not only or p.name in only]
    unknown = set(only) - {p.name for p in found}
    if unknown:
        sys.exit(f"posteriordb.py: {folder} has no {', '.join(sorted(unknown))}")
    return found
