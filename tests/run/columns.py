#!/usr/bin/env python3
"""A table of one's own: columns to use and to leave out, factors, formulas, labels that are text,
missing values, and both scales. Designs are those of R's model.matrix, draw for draw, where R is
there; the same bytes from a plain, a packed and an HDF5 table, on any number of ranks. What is wrong
is one line.  TAP; $1: the build."""
import gzip
import os
import shutil
import tempfile

import lib
from lib import report, skip

lib.needs_packages("columns, factors and formulas")

import h5py
import numpy as np

ENVIRONMENT = dict(os.environ, SOURCE_DATE_EPOCH="0")
LEVELS = {"pain": ["none", "mild", "typical, or \"so\"", "\u00e9t\u00e9"], "sex": ["male", "female"], "group": [3, 10, -1]}


def emass(*command, ranks=1):
    launcher = ["mpirun", "-n", ranks] if ranks > 1 else []
    return lib.limited(*launcher, lib.EMASS, *command, env=ENVIRONMENT)


def quote(value):
    text = str(value)
    return '"' + text.replace('"', '""') + '"' if "," in text or '"' in text else text


def make_table(n, missing=()):
    random = np.random.default_rng(1)
    rows = []
    for i in range(n):
        row = {"id": f"p{i}", "age": round(random.normal(50, 9), 1), "vessels": int(random.integers(0, 4)),
               **{name: levels[random.integers(len(levels))] for name, levels in LEVELS.items()}}
        row["outcome"] = "sick" if random.random() < 1 / (1 + np.exp(-(row["age"] - 50) / 9)) else "well"
        row["ill"] = int(row["outcome"] == "sick")
        rows.append(row)
    for i, (name, value) in enumerate(missing):
        rows[7 * i + 3][name] = value
    return rows


def write(path, rows):
    text = "\n".join([",".join(rows[0])] + [",".join(map(quote, row.values())) for row in rows]) + "\n"
    open(path, "w", encoding="utf-8").write(text)
    gzip.open(path + ".gz", "wb").write(text.encode())


def run(output, options, ranks=1, data="t.csv", model="logistic"):
    with open("run.yaml", "w", encoding="utf-8") as file:
        print(f"model: {{name: {model}, data: '{data}', {options}}}", file=file)
        print("sampler: {name: hmc, leapfrog_steps: 3, step_size: 0.02}\nmass: {estimator: none}\n"
              "run: {chains: 3, warmup: 4, draws: 6, seed: 5, init_radius: 0.1}", file=file)
    return emass("run", "run.yaml", "--quiet", "--overwrite", "--output", output, ranks=ranks)


def fitted(output, options, **more):
    done = run(output, options, **more)
    report(done.returncode == 0, f"runs: {options}", done.stderr)
    return h5py.File(output) if done.returncode == 0 else None


def text(dataset):
    return [b"".join(row).decode() for row in dataset[:]]


def with_r():
    """Each formula as R reads it, its matrix as a plain table."""
    formulas = {"age + sex * vessels": "sex", "pain + sex": "pain, sex", "pain * sex - 1": "pain, sex",
                "age:pain + pain": "pain", "sex:pain": "pain, sex", "pain:sex + sex + age:vessels": "pain, sex",
                "0 + age + pain:sex": "pain, sex", "age * pain * sex": "pain, sex", "factor(group) * age": "",
                "(age)": None, "log(age) * sex + I(age^2/10 - vessels)": "sex", "sqrt(abs(vessels - 1)):pain - 1 + poly(age, 3, raw = TRUE)": "pain", "factor(group):sex:vessels + age - 1": "sex", "-1 + sex + pain:age": "pain, sex",
                "1": "", ". - id - outcome - group": "pain, sex", "0 + pain + sex:vessels + I(age**2/10)": "", "C(group) + sex": ""}
    formulas = {f: factors for f, factors in formulas.items() if factors is not None}
    if not shutil.which("Rscript"):
        skip("designs as R has them", "no R")
        return
    with open("matrix.R", "w") as file:
        print("""options(digits = 17); Sys.setlocale("LC_COLLATE", "C")
t <- read.csv("t.csv", check.names = FALSE, encoding = "UTF-8", stringsAsFactors = TRUE)
for (n in c("pain", "sex")) t[[n]] <- factor(t[[n]], levels = sort(levels(t[[n]]), method = "radix"))
formulas <- readLines("formulas.txt")
for (i in seq_along(formulas)) {
    x <- model.matrix(as.formula(paste("ill ~", formulas[i])), t)
    write.table(cbind(x, t$ill), paste0("matrix", i, ".csv"), sep = ",", row.names = FALSE, col.names = FALSE)
}""", file=file)
    in_r = (f.replace("C(group)", "factor(group)").replace("**", "^") for f in formulas)
    open("formulas.txt", "w").write("\n".join(in_r) + "\n")
    done = lib.limited("Rscript", "--vanilla", "matrix.R", env=dict(os.environ, LC_ALL="C.UTF-8"))
    if done.returncode:
        report(False, "R makes matrices", done.stderr)
        return
    for i, (formula, factors) in enumerate(formulas.items()):
        ours = run("ours.h5", f"formula: 'ill ~ {formula}', factors: [{factors}], prior_scale: 10")
        theirs = run("theirs.h5", "intercept: false, header: no, prior_scale: 10", data=f"matrix{i + 1}.csv")
        same = ours.returncode == theirs.returncode == 0
        with h5py.File("ours.h5") as a, h5py.File("theirs.h5") as b:
            a, b = a["posterior/beta"][:], b["posterior/beta"][:]
            same = same and a.shape == b.shape and np.array_equal(a, b)
        report(same, f"the draws on R's matrix of {formula}", ours.stderr, theirs.stderr, a.shape, b.shape)


def scales():
    """Treatment coding and both scales, by hand."""
    rows = make_table(300)
    options = "columns: [-id, -outcome, -ill], response: outcome, positive: sick, factors: [pain=mild, sex, group], standardise: true"
    with fitted("scales.h5", options.replace(", -outcome", "")) as file:
        names = text(file["posterior/coefficient"])
        expected = ["intercept", "age", "vessels", "pain[none]", 'pain[typical, or "so"]', "pain[\u00e9t\u00e9]", "sex[male]",
                    "group[3]", "group[10]"]
        report(names == expected, "names of coefficients, levels in their order", names)
        design = np.array([[1, r["age"], r["vessels"]] +
                           [float(r[e.split("[")[0]] == type(r[e.split("[")[0]])(e.split("[", 1)[1][:-1])) for e in expected[3:]]
                           for r in rows])
        mean, sd = design.mean(0), design.std(0, ddof=1)
        mean[0], sd[0] = 0, 1
        stored = file["constant_data/feature_mean"][:], file["constant_data/feature_sd"][:]
        report(np.allclose(stored[0], mean, rtol=1e-12) and np.allclose(stored[1], sd, rtol=1e-12), "means and sds are stored")
        beta, original = file["posterior/beta"][:], file["posterior/beta_original"][:]
        report(np.allclose(beta @ ((design - mean) / sd).T, original @ design.T, rtol=1e-9, atol=1e-9),
               "coefficients on both scales say the same")
        report(text(file["constant_data/feature"]) == ["age", "vessels", "pain", "sex", "group"] and
               text(file["constant_data/level"])[0] == "pain[mild]" and list(file["constant_data/n_level"][:]) == [0, 0, 4, 2, 3],
               "levels are stored")
    new = [{name: row[name] for name in ("sex", "pain", "id", "group", "vessels", "age")} for row in rows[:40]]
    write("new.csv", new)
    done = emass("predict", "scales.h5", "--data", "new.csv", "--overwrite", ranks=2)
    with h5py.File("scales.predictions.h5") as file:
        report(done.returncode == 0 and np.allclose(file["predictions/mu"][:], 1 / (1 + np.exp(-(original @ design[:40].T))), rtol=1e-9),
               "predictions of new rows, coded and scaled as those were", done.stderr)
    with fitted("without.h5", "columns: [age, vessels], response: ill, standardise: true, intercept: false") as file:
        report(text(file["posterior/coefficient_original"]) == ["intercept", "age", "vessels"] and
               np.allclose(file["posterior/beta"][:] @ ((design - mean) / sd)[:, 1:3].T,
                           file["posterior/beta_original"][:] @ design[:, :3].T, rtol=1e-9, atol=1e-9),
               "both scales without an intercept")


def orders():
    """The order of levels, with the first as the reference; levels that no row has are left out."""
    levels = "levels: {sex: [male, other, female], group: [10, -1, 3.0], age: [1], ill: [1]}"
    names = {"ill ~ sex + group + I(age^2)": ["intercept", "sex[female]", "group[-1]", "group[3]", "I(age^2)"],
             "ill ~ sex + vessels": ["intercept", "sex[female]", "vessels"], "ill ~ 0 + pain": ["pain[mild]", "pain[none]"]}
    for formula, expected in names.items():
        with fitted("order.h5", f"formula: '{formula}', {levels}") as file:
            report(text(file["posterior/coefficient"])[:len(expected)] == expected, f"levels in order: {formula}", text(file["posterior/coefficient"]))
    with fitted("order.h5", f"columns: [sex, vessels], response: ill, factors: [sex=female], {levels.split(', age')[0]}}}") as file:
        report(text(file["posterior/coefficient"]) == ["intercept", "vessels", "sex[male]"], "of columns, with a reference level")
    with fitted("order.h5", f"formula: 'ill ~ sex', {levels}", ranks=3) as file:
        report(text(file["constant_data/level"]) == ["sex[male]", "sex[female]"], "levels on three ranks are stored in that order")
    done = emass("predict", "order.h5", "--data", "t.csv", "--overwrite")
    report(done.returncode == 0, "and new rows predicted", done.stderr)


def readers():
    """The same bytes from each reader and on any ranks; dropped rows are those of complete cases."""
    missing = [("age", ""), ("sex", "NA"), ("pain", "?"), ("vessels", "nan"), ("outcome", "N/A"), ("id", "")]
    write("na.csv", make_table(300, missing))
    options = "columns: [age, sex, pain, vessels], response: outcome, positive: sick, factors: [sex, pain=none], na: drop"
    done = run("plain.h5", options, data="na.csv")
    report("5 of 300 rows" in done.stderr, "rows with a missing value are counted", done.stderr)
    contents = set()
    for ranks, data in (1, "na.csv"), (2, "na.csv"), (3, "na.csv.gz"), (4, "na.csv"):
        run("any.h5", options, ranks, data)
        with h5py.File("any.h5") as file:
            contents.add((file["posterior/beta"][:].tobytes(), file.attrs["data_hash"], tuple(text(file["posterior/coefficient"]))))
    report(len(contents) == 1, "the same draws and hash, plain on 1, 2 and 4 ranks, packed on 3")
    complete = [row for row in make_table(300, missing) if all(row[n] not in ("", "NA", "?", "nan", "N/A")
                                                                for n in ("age", "sex", "pain", "vessels", "outcome"))]
    write("complete.csv", complete)
    run("any.h5", options, data="complete.csv")
    with h5py.File("any.h5") as a, h5py.File("plain.h5") as b:
        report(a.attrs["data_hash"] == b.attrs["data_hash"] and np.array_equal(a["posterior/beta"][:], b["posterior/beta"][:]),
               "which are the draws of complete rows")
    with h5py.File("numbers.h5", "w") as file:
        rows = make_table(300)
        data = np.array([[r["age"], r["group"], r["vessels"], r["ill"]] for r in rows])
        file["t"] = data
        data[5, 2] = np.nan
        file["missing"] = data
    np.savetxt("numbers.csv", np.where(np.isnan(data), 0, data)[np.arange(300) != 5], delimiter=",", fmt="%.17g")
    options = "columns: [1, 2], factors: [2=10]"
    with fitted("hdf5.h5", options, data="numbers.h5:/t", ranks=3) as file:
        report(text(file["posterior/coefficient"]) == ["intercept", "x1", "x2[-1]", "x2[3]"], "HDF5: columns and factors by number")
    run("hdf5.h5", options.replace("1, 2", "-3") + ", na: drop", data="numbers.h5:/missing", ranks=2)
    with h5py.File("hdf5.h5") as file:
        whole = file["posterior/beta"][:]
    run("hdf5.h5", options, data="numbers.h5:/t")
    with h5py.File("hdf5.h5") as file:
        report(np.array_equal(file["posterior/beta"][:], whole), "what is left out may be missing")
    run("drops.h5", "na: drop, factors: [2]", data="numbers.h5:/missing", ranks=2)
    run("text.h5", "factors: [2]", data="numbers.csv")
    with h5py.File("drops.h5") as a, h5py.File("text.h5") as b:
        report(np.array_equal(a["posterior/beta"][:], b["posterior/beta"][:]), "HDF5: rows with NaN are left out")
    with open("t.svm", "w") as file:
        for i in range(60):
            print(i % 2, "1:0.5 2:1 4:2" if i % 3 else "3:1", file=file)
    with fitted("svm.h5", "columns: [-x2, -4]", data="t.svm", ranks=2) as file:
        report(text(file["posterior/coefficient"]) == ["intercept", "x1", "x3"], "LIBSVM: columns left out")
    with fitted("svm.h5", "columns: 6", data="t.svm") as file:
        report(len(file["posterior/coefficient"]) == 7, "LIBSVM: how many columns there are")
    for model, options in ("linear", "response: age"), ("poisson", "response: vessels, exposure: age"), ("negative_binomial", "response: vessels"):
        with fitted("glm.h5", options + ", columns: [sex, group], factors: [sex, group]", model=model) as file:
            report(text(file["posterior/coefficient"])[1:] == ["sex[male]", "group[3]", "group[10]"], f"{model}: factors")


def refuses():
    write("labels.csv", [{"x": i, "f": "one", "y": "yes" if i % 3 else "No"} for i in range(20)])
    with fitted("yes.h5", "columns: [x]", data="labels.csv") as file:
        report(file is not None, "no and yes are labels")
    rows = [(i / 2, i % 3 % 2) for i in range(1, 30)]
    open("point.csv", "w").write("x;y\n" + "".join(f"{x};{y}\n" for x, y in rows))
    open("comma.csv", "w").write("x;y\n" + "".join(f"{x};{y}\n".replace(".", ",") for x, y in rows))
    open("bare.csv", "w").write("".join(f"{x};{y}\n".replace(".", ",") for x, y in rows))
    draws = []
    for name, options in ("point", "intercept: true"), ("comma", "decimal: comma"), ("bare", "decimal: comma"):
        with fitted(f"{name}.h5", options, data=f"{name}.csv") as file:
            draws.append(file["posterior/beta"][:])
    report(all(np.array_equal(beta, draws[0]) for beta in draws), "numbers with decimal commas, with and without a header")
    open("unnamed.csv", "w").write('"",x,y\n1,2,0\n2,3,1\n')
    open("twice.csv", "w").write("x,x,y\n1,2,0\n2,3,1\n")
    open("mixed.csv", "w").write("x,y\n1,2\nb,3\n2,5\n")
    open("ones.csv", "w").write("intercept,y\n1,2\n2,3\n3,3\n")
    open("gaps.csv", "w").write("x,y\n,0\nNA,1\n")
    open("huge.csv", "w").write("x,z,y\n1e200,1e-200,0\n2e200,2e-200,1\n")
    open("years.csv", "w").write("y,2020\n1,2\n3,4\n2,5\n")
    open("marks.csv", "w").write("age,dose (mg),ill\n1,2,0\n2,1,1\n3,5,0\n")
    open("2020.csv", "w").write("y,2020,x\n1,2,a\n0,4,b\n1,5,a\n")
    open("windows.csv", "wb").write("y,gr\u00f6\u00dfe,ort\n1,2,S\u00fcd\n2,3,Nord\n".encode("cp1252"))
    open("labels_r.csv", "w").write('"x" "y"\n"1" 1.5 2\n"2" 2 3\n')
    open("names_r.csv", "w").write('"x","y"\n"Mazda RX4",1.5,2\n"Datsun",2,3\n')
    prior = "prior: {coefficients: {%s: {normal: [0, 1]}}}"
    cases = [("2020.csv", "header: yes, formula: y ~ 2020", "found '2020' at character 5, expected a column (a name that begins with a digit stands between backquotes: `2020`)"),
             ("2020.csv", "header: yes, formula: y ~ x, " + prior % "'x[a]'", "found 'x[a]', the reference level of its factor, expected a level with a coefficient"),
             ("2020.csv", "header: yes, formula: y ~ x, " + prior % "'x[c]'", "found 'x[c]', expected default or a coefficient; did you mean x[b]?"),
             ("2020.csv", "header: yes, formula: y ~ x, " + prior % "x[b]", '(a name with brackets stands between quotes: "district[West]")'),
             ("windows.csv", "formula: y ~ ort", "windows.csv:2: found 'S\\xfcd' for column ort, expected UTF-8 (the file is not UTF-8; if it is of Windows-1252: iconv"),
             ("windows.csv", "formula: y ~ gr\u00f6\u00dfe", "found 'gr\u00f6\u00dfe' at character 5, expected a column of the data such as y (the file is not UTF-8"),
             ("windows.csv", "columns: [gr\u00f6\u00dfe], response: y", "or a number from 1 to 3 (the file is not UTF-8"),
             ("labels_r.csv", "formula: y ~ x", "labels_r.csv:2: found 3 columns, expected 2 as in the first row (R writes no row labels with row.names = FALSE)"),
             ("names_r.csv", "formula: y ~ I(x + 1)", "names_r.csv:2: found 3 columns, expected 2 as in the first row (R writes no row labels with row.names = FALSE)"),
             ("unnamed.csv", "na: drop", "unnamed.csv:1: found no name for column 1"),
             ("twice.csv", "columns: [x]", "two columns called 'x'"),
             ("twice.csv", "intercept: true", "two columns called 'x', expected one name for each that is used (columns: [-2] leaves"),
             ("twice.csv", "columns: [1, 2]", "two columns called 'x'"),
             ("twice.csv", "formula: y ~ x", "found 'x' at character 5, the name of columns 1 and 2 of the data"),
             ("twice.csv", "formula: y ~ log(x)", "found 'x' at character 9, the name of columns 1 and 2 of the data"),
             ("ones.csv", "formula: y ~ intercept", "ones.csv:1: found column 'intercept' beside the intercept of the model, expected another name, or"),
             ("ones.csv", "response: y", "ones.csv:1: found column 'intercept' beside the intercept of the model"),
             ("gaps.csv", "na: drop", "a missing value in each of 2 rows"),
             ("gaps.csv", "columns: [x]", "gaps.csv:2: found nothing for column x, expected a number (na: drop leaves such rows out)"),
             ("t.csv", "columns: [agee], response: ill", "or a number from 1 to 8; did you mean age?"),
             ("t.csv", "formula: 'ill ~ offset(age)'", "an offset is a column that model.offset names"),
             ("t.csv", "columns: [age, -sex], response: ill", "columns to use, or columns to leave out"),
             ("t.csv", "columns: [age, ill], response: ill", "expected no response there"),
             ("t.csv", "columns: [age, sex], response: ill", "expected a number (those of categories are listed in model.factors)"),
             ("mixed.csv", "formula: y ~ x", "mixed.csv:3: found 'b' for column x, expected a number as in other rows (factor(x) in"),
             ("t.csv", "formula: 'ill ~ log(sex)'", "for column sex, expected a number"),
             ("t.csv", "formula: 'ill ~ sex', levels: {sex: [female]}", "found level 'male' of factor sex, expected one of model.levels: [\"female\"]"),
             ("t.csv", "formula: 'ill ~ sex', levels: {sexx: [female]}", "found no factor 'sexx'"),
             ("t.csv", "formula: 'ill ~ sex', levels: {'2': [female]}", "model.levels: found '2', expected the name of that column"),
             ("t.csv", "formula: 'ill ~ sex', levels: {sex: female}", "model.levels.sex: found female, expected a list of levels"),
             ("t.csv", "formula: 'ill ~ sex', levels: {sex: [male, male]}", "model.levels.sex: found 'male' twice"),
             ("t.csv", "formula: 'ill ~ vessels', levels: {vessels: ['0', '00', '1', '2', '3']}", "model.levels.vessels: found '00' twice, expected it once (01 and 1 are one number)"),
             ("t.csv", "formula: 'ill ~ sex', levels: {sex: [male], sex: [female]}", "model.levels: found duplicate object key near '\"sex\"'"),
             ("t.csv", "formula: 'ill ~ age**2'", "found '**2' at character 10, expected +, -, *, : or the end (a power is I(x^2))"),
             ("t.csv", "formula: 'ill ~ C(sex, Sum)'", "expected ')' (model.levels has the order of levels"),
             ("t.csv", "formula: 'ill ~ as.factor(sex)'", "categories are factor(NAME)"),
             ("t.csv", "columns: [age], response: ill, factors: [sex]", "expected one of the features"),
             ("t.csv", "columns: [age, sex], response: ill, factors: [sex=other]", "found no level 'other' of factor sex"),
             ("labels.csv", "columns: [x, f], factors: [f]", "found one level of factor f"),
             ("t.csv", "columns: [age], response: outcome", "found labels sick, well"),
             ("t.csv", "columns: [age], response: outcome, positive: ill", "found labels sick, well"),
             ("t.csv", "columns: [age], response: ill, positive: sick", "found numbers as labels"),
             ("t.svm", "factors: [x1]", "sparse data"), ("t.svm", "formula: 'label ~ x1'", "sparse data"),
             ("t.csv", "formula: 'ill ~ age', response: ill", "model.response too"),
             ("t.csv", "formula: 'ill ~ age', columns: [age]", "model.columns too"),
             ("marks.csv", "formula: 'ill ~ dose (mg)'", "did you mean `dose (mg)`, between backquotes?"),
             ("marks.csv", "formula: 'ill ~ age + dose'", "did you mean `dose (mg)`, between backquotes?"),
             ("years.csv", "formula: 'y ~ `2020`'", "such as x1 (the data name no columns: model.header: yes takes the first line of a text as names)"),
             ("t.csv", "formula: 'ill ~ age + (1 | group)'", "effects that vary by group need a Stan program"),
             ("t.csv", "formula: 'ill ~ sin(age)'", "found the function 'sin'"),
             ("t.csv", "formula: 'ill ~ age +'", "found the end at character 12"),
             ("t.csv", "formula: 'ill ~ age age'", "found 'age' at character 11"),
             ("t.csv", "formula: 'ill + age'", "expected '~'"), ("t.csv", "formula: 'ill ~ ill'", "'ill' among the terms"),
             ("t.csv", "formula: 'ill ~ age:vessels:group:sex:pain'", "at most four"),
             ("t.csv", "formula: 'ill ~ aeg'", "found 'aeg' at character 7, expected a column of the data; did you mean age?"),
             ("t.csv", "formula: 'ill ~ age + (1 | group)'", "effects that vary by group need a Stan program"),
             ("t.csv", "formula: 'ill ~ s(age)'", "smooth terms need a Stan program"),
             ("t.csv", "columns: [age], response: outcome, positive: Sick", "did you mean sick?"),
             ("comma.csv", "columns: [x]", "comma.csv:2: found '0,5' for column x, expected a number (with decimal: comma that is one)"),
             ("t.csv", "decimal: comma", "found commas between columns"),
             ("huge.csv", "standardise: true", "column x: found numbers from 1e+200 to 2e+200"),
             ("huge.csv", "standardise: true, columns: [z]", "column z: found numbers from 1e-200 to 2e-200")]
    for data, options, message in cases:
        done = run("bad.h5", options, data=data, ranks=2 if len(options) % 5 == 0 else 1)
        report(done.returncode == 2 and done.stderr.count("emass: ") == 1 and message in done.stderr and not os.path.exists("bad.h5"),
               f"{data}, {options}: one line", done.returncode, done.stderr)


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    write("t.csv", make_table(300))
    with_r()
    orders()
    scales()
    readers()
    refuses()
lib.finish()
