"""Neural networks on MNIST: 004, figures 4, 7, 8 and 9 and Table 3; 003, figure 6."""

import numpy as np

from papers import calibration
from papers import euler
from papers.page import logarithmic, panels
from papers.runs import say_builds
from papers.verdict import Claim, Estimate, below, of_runs, of_share

INTEGRATORS = {"s": ("mSGNHT-S", "C0"), "e": ("mSGNHT-E", "C1")}
NEAR = 0.2  # points of a paper's number
TEST_CASES = 10000
TABLE_3 = {  # percent; 400-400
    "s": ("mSGNHT-S", 98.25),
    "e": ("mSGNHT-E", 98.20),
    "sgd": ("SGD", 98.17),
    "200/s": ("mSGNHT-S, 200 epochs", 98.25),
    "200/e": ("mSGNHT-E, 200 epochs", 98.20),
    "rmsprop": ("RMSprop", None),
    "adam": ("Adam", None),
    "psgld": ("pSGLD, without Gamma", None),
}
FIGURE_8 = {"s": 97.36, "e": 96.86}  # three layers
SCORES = ("accuracy", "nll", "brier", "ece")
ENSEMBLE = 98.6  # percent
FIGURE_6 = {"sgd": "SGD", "sgld": "SGLD", "sghmc": "SGHMC"}
HEADER = [
    "run",
    "epochs",
    "paper, %",
    "averaged prediction, %",
    "last epoch, %",
    "training NLL",
    "epochs that diverged",
    "s an epoch",
]


def write(page, results):
    page.heading("Neural networks: 004 and 003")
    made = [name for name in results.runs if "/networks/" in name and begun(results, name)]
    if not made:
        return page.leave_out()
    page.say("""Curves are of single draws, one at the end of each epoch: the mean over the seeds, and a band
        from the lowest to the highest. An averaged prediction is the mean over the draws after warmup, which is the
        first epoch where nothing else is said, for each seed by itself; then accuracies are averaged over seeds. A cell of
        `epochs` says how far a run is of how far it goes; a row is missing where a run has not begun. An epoch that diverged is one at whose
        end the state was not finite or hot beyond any approach: the chain is put back to its beginning.
        Seconds are of one chain, of processor time on this machine; the scores are in them. 004 has the prior N(0, 1), and
        40 epochs, with a step that is halved at 20. What it leaves out is what its first author's code has for networks like
        these ([pSGLD](https://github.com/ChunyuanLI/pSGLD)): minibatches of 100, and predictions averaged over
        nearly all draws, those on the way to the posterior too. Nothing was tuned by the test data, but that the mean over epochs 21
        to 40 was given up when it had fallen short of Table 3, and a halved step, of which Table 3 does not speak, when eight
        chains had; what these draws come to on rows held out from the training
        data is said at the end of Table 3. These runs are those of
        `make papers-networks`, in the order of `jobs/papers/networks`; those that have not begun are named under Not run.""")
    say_builds(page, results, made)
    write_depths(page, results)
    write_steps(page, results)
    write_sigmoid(page, results)
    write_table_3(page, results)
    write_ensemble(page, results)
    write_lenet(page, results)
    write_figure_6(page, results)


# ---- what a run has left, whole or not ----


def whole(results, name, variable, where):
    """[chain][epoch], warmup first; what has not been written yet is NaN, or 0."""
    groups = (f"warmup_{where}", where)
    return np.concatenate([results.draws(name, variable, group) for group in groups], axis=1)


def history(results, name, variable, where="posterior"):
    """As far as the run has come, which an accuracy says: it is always finite."""
    written = np.isfinite(whole(results, name, "test_accuracy", "posterior")).all(axis=0)
    return whole(results, name, variable, where)[:, : int(written.sum())]


def begun(results, name):
    return results.has(name) and history(results, name, "test_accuracy").size > 0


def epoch_seconds(results, name):
    return results.cpu_seconds(name) / history(results, name, "test_accuracy").size


def averaged(results, name, score="accuracy"):
    """Of each seed; none before the end of a run."""
    scores = results.draws(name, score, "averages").reshape(-1)
    return scores if np.all(np.isfinite(scores)) else np.empty(0)


def final(results, name):
    """Of averaged predictions, percent; the error is that of seeds, or of test cases where there is one
    seed. Nothing before the end of a run."""
    values = averaged(results, name) if begun(results, name) else np.empty(0)
    if not values.size:
        return None
    share = of_runs(values) if values.size > 1 else of_share(float(values[0]), TEST_CASES)
    return Estimate(100 * share.value, 100 * share.error)


def splitting_claim(results, names):
    """{case: name with a place for the integrator}: of those of which both have ended."""
    ends = {case: [final(results, name.format(i)) for i in ("e", "s")] for case, name in names.items()}
    return Claim(
        "Averaged predictions of mSGNHT-S are better than those of mSGNHT-E",
        {case: below(*both) for case, both in ends.items() if all(both)},
    )


def reached(results, runs):
    """[(name, label, paper)]: which come as near to the paper as they should."""
    sides = {f"Within {NEAR} points of the paper's number": [], "Better by more": [], "Worse by more": []}
    near, better, worse = sides.values()
    for name, label, paper in runs:
        end = final(results, name)
        if paper and end:
            side = near if abs(end.value - paper) <= NEAR else better if end.value > paper else worse
            side.append(f"{label}, {end.value:.2f} for {paper:.2f}")
    return " ".join(f"{words}: {'; '.join(side)}." for words, side in sides.items() if side)


def unfinished(results, names):
    """What a verdict has to wait for."""
    late = [f"`{name}`" for name in names if begun(results, name) and final(results, name) is None]
    return f"Not at their end: {', '.join(late)}." if late else ""


def percent(values):
    """The mean over seeds, and their range where there are some."""
    values = 100 * np.asarray(values)
    if not values.size or not np.all(np.isfinite(values)):
        return None
    if values.size == 1:
        return f"{values[0]:.2f}"
    return f"{values.mean():.2f} ({values.min():.2f} to {values.max():.2f})"


def row(results, name, label, paper=None):
    accuracy, nll = (history(results, name, v) for v in ("test_accuracy", "train_nll"))
    diverging = history(results, name, "diverging", "sample_stats")
    seconds = epoch_seconds(results, name)
    return [
        label,
        f"{accuracy.shape[1]} of {results.planned(name)}",
        f"{paper:.2f}" if paper else None,
        percent(averaged(results, name)),
        percent(accuracy[:, -1]),
        float(nll[:, -1].mean()),
        f"{int(diverging.sum())} of {diverging.size}",
        None if np.isnan(seconds) else seconds,
    ]


def rows_of(results, runs):
    """[(name, label, paper)] -> those that have begun."""
    return [row(results, *run) for run in runs if begun(results, run[0])]


def draw(page, results, figure_name, columns, caption, low=92):
    """columns: [(title, [(name, label, colour)])]; panels for accuracy and loss, by epoch and by second."""
    columns = [(t, [r for r in runs if begun(results, r[0])]) for t, runs in columns]
    columns = [(title, runs) for title, runs in columns if runs]
    if not columns:
        return
    if len(columns) > 1:
        figure, axes = panels(4, len(columns), sharey="row")
        places = axes.T
    else:
        figure, axes = panels(2, 2, 4.2, sharey="row")
        places = [axes.T.ravel()]
    highest = 0.0
    for (title, runs), place in zip(columns, places):
        for name, label, colour in runs:
            accuracy, nll = (history(results, name, v) for v in ("test_accuracy", "train_nll"))
            highest = max(highest, 100 * accuracy.max())
            epoch = np.arange(1, accuracy.shape[1] + 1)
            seconds = epoch * epoch_seconds(results, name)
            for i, x in enumerate((epoch, seconds)):
                band(place[2 * i], x, 100 * accuracy, label, colour)
                band(place[2 * i + 1], x, nll, label, colour)
        for i, words in enumerate(("epoch", "seconds")):
            place[2 * i].set(xlabel=words)
            place[2 * i + 1].set(xlabel=words)
        place[0].set(title=title)
        place[0].xaxis.get_major_locator().set_params(integer=True)
        place[1].xaxis.get_major_locator().set_params(integer=True)
    for accuracy, nll in (places[0][:2], places[0][2:]):
        accuracy.set(ylim=(low, min(100.0, highest + 0.3)))
        logarithmic(nll)
    for ax in axes[:, 0]:
        ax.set(ylabel="training NLL" if ax.get_yscale() == "log" else "test accuracy, %")
    axes[0, 0].legend(loc="lower right")
    page.figure(figure_name, figure, caption)


def band(ax, x, y, label, colour):
    ax.plot(x, y.mean(axis=0), color=colour, lw=1, label=label)
    ax.fill_between(x, y.min(axis=0), y.max(axis=0), color=colour, alpha=0.25, lw=0)


def section(page, results, title, runs, *claims):
    """Heading, verdict and table; whether there is anything."""
    page.heading(title, 3)
    rows = rows_of(results, runs)
    if rows:
        page.verdict(*claims, reached(results, runs), unfinished(results, [run[0] for run in runs]))
        page.table(HEADER, rows)
    else:
        page.leave_out()
    return bool(rows)


def integrators(name, title="{}"):
    """The two runs of a name with a place for the integrator."""
    return [(name.format(i), title.format(label), None) for i, (label, _) in INTEGRATORS.items()]


def coloured(name):
    return [(name.format(i), label, colour) for i, (label, colour) in INTEGRATORS.items()]


def layers(depth):
    return f"{depth} layer" + ("s" if depth > 1 else "")


# ---- 004 ----


def write_depths(page, results):
    name = "004/networks/relu/%d/{}/%s"
    runs = [
        run
        for depth in (2, 3, 4)
        for run in integrators(name % (depth, "1e-4"), "{}, %d layers" % depth)
    ]
    runs.append((name.format("e") % (4, "5e-5"), "mSGNHT-E, 4 layers, h = 5e-5", None))
    cases = {layers(depth): name % (depth, "1e-4") for depth in (2, 3, 4)}
    if not section(
        page,
        results,
        "004, Fig. 4: layers of 100 ReLUs, h = 1e-4, D = 5",
        runs,
        failures(results, name.format("e") % (4, "1e-4"), name.format("s") % (4, "1e-4")),
        splitting_claim(results, cases),
    ):
        return
    columns = [(f"{depth} layers", coloured(name % (depth, "1e-4"))) for depth in (2, 3, 4)]
    columns[2][1].append((name.format("e") % (4, "5e-5"), "mSGNHT-E, h = 5e-5", "C2"))
    draw(page, results, "004_fig4", columns, "Learning curves by depth.")
    write_why(page, results)


def failures(results, euler, splitting):
    """The claim that Euler's method fails at four layers and the splitting does not."""
    if not (begun(results, euler) and begun(results, splitting)):
        return "The claim that mSGNHT-E fails with four layers at h = 1e-4 wants both runs."
    words = ["The paper's claim: with four layers at h = 1e-4 mSGNHT-E fails and mSGNHT-S works."]
    for label, name in (("mSGNHT-E", euler), ("mSGNHT-S", splitting)):
        lost = history(results, name, "diverging", "sample_stats").astype(bool)
        last = 100 * history(results, name, "test_accuracy")[:, -1]
        words.append(
            f"Here {int(lost.any(axis=1).sum())} of {lost.shape[0]} seeds of {label} diverged in some epoch, and "
            f"{int((last < 90).sum())} are below 90 % after {lost.shape[1]} epochs, {last.mean():.2f} % being the mean."
        )
    return " ".join(words)


def write_why(page, results):
    """What would make Euler's method fail."""
    rows = euler.rows(results.folder)
    page.say("""As printed, the two forms differ by little here: each takes the gradient where theta has gone, so that both are
        a leapfrog with a friction, and the friction takes 1 - h xi of a momentum in one and exp(-h xi) in the other, of
        which h xi is 5e-4.""")
    if not rows:
        return
    page.say("""What the paper leaves open was tried in numpy (`analysis/papers/euler.py`, three seeds), with the gradient at
        theta before the step, too: so has it equation 1 of the paper for Euler's method, and its first author's program of
        a year later for both. Then Euler's method is explicit in all it moves, and stable only where the curvature
        is below xi / h; the splitting where it is below 2 xi / h. Test accuracies after so many epochs, in percent:""")
    page.table(["start", "h", "minibatch", "epochs", *euler.FORMS.values()], rows)
    page.say(euler.failures(results.folder) + """ A tenth is chance. So the form that diverges is Euler's, as the paper says,
        where one does; but no step, start or minibatch was found with which it diverges while the splitting learns.""")


def write_steps(page, results):
    name = "004/networks/relu/2/{}/%s"
    steps = ("2e-4", "1e-4", "5e-5")
    runs = [run for h in steps for run in integrators(name % h, "{}, h = %s" % h)]
    better = splitting_claim(results, {f"h = {h}": name % h for h in steps})
    if section(page, results, "004, Fig. 7: two layers of 100 ReLUs, by step size", runs, better):
        columns = [(f"h = {h}", coloured(name % h)) for h in steps]
        draw(page, results, "004_fig7", columns, "Learning curves by step size.")


def write_sigmoid(page, results):
    name = "004/networks/sigmoid/%d/{}"
    runs = [run for depth in (1, 2) for run in integrators(name % depth, "{}, " + layers(depth))]
    runs += [
        ((name % 3).format(i), f"{label}, 3 layers", FIGURE_8[i])
        for i, (label, _) in INTEGRATORS.items()
    ]
    better = splitting_claim(results, {layers(depth): name % depth for depth in (1, 2, 3)})
    if section(page, results, "004, Fig. 8: layers of 100 sigmoids, h = 1e-3, D = 10", runs, better):
        columns = [(layers(depth), coloured(name % depth)) for depth in (1, 2, 3)]
        draw(page, results, "004_fig8", columns, "Learning curves by depth.")


def write_table_3(page, results):
    name = "004/networks/table3/{}"
    runs = [(name.format(key), label, paper) for key, (label, paper) in TABLE_3.items()]
    better = splitting_claim(results, {"40 epochs": name, "200 epochs": name.format("200/{}")})
    if section(page, results, "004, Table 3: 400-400 ReLUs, h = 2e-4, D = 60", runs, better):
        curves = [
            (name.format(key), label, f"C{i}") for i, (key, (label, _)) in enumerate(TABLE_3.items())
        ]
        draw(page, results, "004_table3", [("400-400", curves)], "Learning curves.", low=95)
        page.say("""One seed each, but three of mSGNHT for 40 epochs. The paper does not say how many epochs these have,
            nor that their step is halved: ours of mSGNHT is not. (Halved at 20 it is the ensemble's below.) Weights go
            sqrt(2 t / D) in a time t, which is 0.4 in 40 epochs, and their prior's scale is 1: so beside 40 epochs there
            are 200, of which the last 160 are averaged. The paper's SGD is that of Blundell et al. (2015). Ours has
            momentum 0.9 and a rate of 0.012 on the mean loss, 40 epochs, halved at 20; RMSprop and Adam have 1e-3.
            Optimisers are no samplers: their averaged prediction is the mean over the second half of their way.""")
        write_held_out(page, results)


def write_held_out(page, results):
    """What the draws of the first half are good for, away from the test data."""
    names = {first: f"004/networks/held-out/from-{first}" for first in (2, 21)}
    ends = {first: final(results, name) for first, name in names.items() if begun(results, name)}
    if all(ends.get(first) for first in names):
        page.say(
            f"""Which draws to average: of 10,000 of the training data, the chain having been trained on the others, the
            mean over epochs 2 to 40 predicts {ends[2].value:.2f} % right, that over 21 to 40 {ends[21].value:.2f} %
            (standard errors {ends[2].error:.2f} and {ends[21].error:.2f}, of the same chain)."""
        )


def write_ensemble(page, results):
    page.heading("Eight chains beside one: 400-400 ReLUs, as in Table 3, and convolutions", 3)
    names = {"40 epochs": "004/networks/ensemble", "200 epochs": "004/networks/ensemble/200",
             "20 epochs of a cold posterior": "004/networks/ensemble/cold",
             "24 epochs of a cold posterior of convolutions": "004/networks/ensemble/convolutions"}
    names = {words: name for words, name in names.items() if begun(results, name)}
    if not names:
        return page.leave_out()
    ended = {words: name for words, name in names.items() if averaged(results, name).size}
    single = {words: {s: 100 * averaged(results, name, s) for s in SCORES} for words, name in ended.items()}
    pooled = {words: {s: 100 * float(results.draws(name, s, "predictions")) for s in SCORES} for words, name in ended.items()}
    for words, name in ended.items():
        for side, group in ((single, "averages"), (pooled, "predictions")):
            sure = results.draws(name, "probability", group).max(axis=-1).mean(axis=-1)
            side[words]["confidence"] = 100 * (sure.reshape(-1) if group == "averages" else float(sure))
    page.verdict(
        *(
            f"Of {words}, {pooled[words]['accuracy']:.2f} % of the ensemble's predictions are right, and "
            f"{single[words]['accuracy'].mean():.2f} % of a chain's ({ENSEMBLE} % were hoped for)."
            for words in ended
        ),
        Claim(
            "The ensemble is better than one of its chains, by standard errors of chains",
            {
                f"{score}, {words}": (1 if score == "accuracy" else -1)
                * below(of_runs(single[words][score]), Estimate(pooled[words][score]))
                for words in ended
                for score in SCORES
            },
        ),
        unfinished(results, names.values()),
    )
    rows = [
        [f"{score}, {words}", f"{x.mean():.3f}", f"{x.min():.3f} to {x.max():.3f}", f"{pooled[words][score]:.3f}"]
        for words in ended
        for score, x in single[words].items()
    ]
    if rows:
        page.table(["of averaged predictions, times 100", "one chain, mean", "range", "all eight"], rows)
    page.table(HEADER, rows_of(results, [(name, f"8 chains, {words}", None) for words, name in names.items()]))
    doubts = "; ".join(
        f"{np.mean(side[words]['accuracy']) - np.mean(side[words]['confidence']):.2f} for {whose}, {words}"
        for words in ended
        for side, whose in ((single, "a chain"), (pooled, "the ensemble"))
    )
    page.say(f"""brier and ece (expected calibration error) and nll: the less the better. Draws are of epochs 2 to 40, 41 to 200, 11 to 20, or 19 to 24; a
        cold posterior is that of temperature 1e-4, with steps halved thrice.
        Confidence is the mean of the largest probability of a prediction. Accuracy less confidence is {doubts}: where it is above
        zero, a mean over draws doubts too much; a mean over chains doubts more than one chain, while it is right
        more often, and that is its ece.""")
    for words, name in ended.items():
        write_calibration(page, results, words, name)


def write_calibration(page, results, words, name):
    """Whether it is the mean over chains, or their posterior, that doubts."""
    chains, mean = (np.asarray(results.draws(name, "probability", group), float) for group in ("averages", "predictions"))
    chains, mean = chains.reshape(-1, *chains.shape[-2:]), mean.reshape(chains.shape[-2:])
    truth = results.draws(name, "test_response", "constant_data").astype(int).ravel()
    page.table(
        [f"{words}, times 100"] + list(SCORES) + [f"{score} at a temperature" for score in SCORES[1:]],
        [[whose, *(f"{x:.2f}" for x in plain), *(f"{x:.2f}" for x in fitted[1:])]
         for whose, plain, fitted in calibration.compare(chains, mean, truth)],
    )
    gain, error = calibration.gains(chains, mean, truth)
    page.say(f"""The ensemble's scores less a chain's, with standard errors by drawing test observations anew:
        {"; ".join(f"{score} {x:+.3f} ({e:.3f})" for score, x, e in zip(SCORES, gain, error))}.
        Multiplied: the geometric mean of the chains' probabilities, which takes sharper ones for a mean over a posterior.
        At a temperature: probabilities to the power 1/T, T being that of the least nll on the other half of the test data.
        Of {len(truth)} observations the ensemble's ece would be {calibration.unavoidable(mean):.2f} if all came about as
        it says.""")


def write_lenet(page, results):
    name = "004/networks/lenet/{}/%s"
    steps = ("1e-4", "5e-4")
    runs = [run for h in steps for run in integrators(name % h, "{}, h = %s" % h)]
    better = splitting_claim(results, {f"h = {h}": name % h for h in steps})
    if section(page, results, "004, Fig. 9: LeNet, D = 50", runs, better):
        columns = [(f"h = {h}", coloured(name % h)) for h in steps]
        draw(page, results, "004_fig9", columns, "The first epochs of the paper's 40.", low=95)


# ---- 003 ----


def write_figure_6(page, results):
    page.heading("003, Fig. 6: 784-100-10, test error by step", 3)
    names = {key: f"003/networks/{key}" for key in FIGURE_6}
    names = {key: name for key, name in names.items() if begun(results, name)}
    if not names:
        return page.leave_out()
    last = {key: of_runs(history(results, name, "test_accuracy")[:, -1]) for key, name in names.items()}
    page.verdict(
        Claim(
            "SGHMC has the lower error at its last draw",
            {f"than {FIGURE_6[k]}": below(last[k], last["sghmc"]) for k in last if "sghmc" in last and k != "sghmc"},
        ),
        unfinished(results, names.values()),
    )
    page.table(HEADER, [row(results, name, FIGURE_6[key]) for key, name in names.items()])
    figure, axes = panels(1, 1, 5, 3)
    for i, (key, name) in enumerate(names.items()):
        error = 100 - 100 * history(results, name, "test_accuracy")
        band(axes[0, 0], np.arange(1, error.shape[1] + 1), error, FIGURE_6[key], f"C{i}")
    axes[0, 0].set(xlabel="step: an epoch", ylabel="test error, %")
    logarithmic(axes[0, 0])
    axes[0, 0].legend()
    page.figure("003_fig6", figure, "Test error of single draws, mean and range of the seeds.")
    reached = {k: steps_to(results, name) for k, name in names.items()}
    priors = "; ".join(f"{FIGURE_6[k]} {history(results, n, 'log_prior')[:, -1].mean():.0f}" for k, n in names.items())
    page.say(
        """The paper: SGHMC has the lowest error, reached after about 50 steps, and stays there. Here: """
        + "; ".join(f"{FIGURE_6[k]} is at {e:.2f} % after {n} steps, and first within 0.2 of that in step {t}"
                    for k, (e, t, n) in reached.items())
        + ". The paper prints no steps, rates, or sizes of minibatches: `jobs/papers/mnist_gamma.yaml` says which are these, and whence; the rate is SGHMC's for all three, and none was sought for SGD and SGLD."
        f" Log density of the prior at the end: {priors}. With a learned scale it has no bound where weights and scale shrink together, and an"
        " optimiser goes there."
    )


def steps_to(results, name):
    """The mean error over the last tenth, the first epoch that is within 0.2 of it, and how many there are."""
    error = 100 - 100 * history(results, name, "test_accuracy").mean(axis=0)
    last = float(error[-max(1, error.size // 10) :].mean())
    return last, int(np.argmax(error < last + 0.2)) + 1, error.size
