/*
 * Draws the page of emass report from the JSON in it, with plot.js. emass report --figures runs the
 * same text by Duktape, where there is no document, and which knows ECMAScript 5.
 *
 *   page(data)    the HTML of the body
 *   files(data)   [name, SVG, name, SVG, ...]: the figures as files
 *   figures(data) the figures of the page, in its order
 */
/* ---- the figures: each returns {width, height, title, body} ---- */

function drawChain(chain, data) {
    var bins = chain.ranks.length ? chain.ranks[0].length : 1;
    var expected = chain.draws / bins, spread = 2 * Math.sqrt(expected * (1 - 1 / bins));
    var values = chain.traces.reduce(function (range, list) { return rangeOf(list, range); }, null);
    var most = chain.ranks.reduce(function (range, list) { return rangeOf(list, range); }, [0, expected + 2 * spread])[1];
    var trace = new Axes({left: 52, top: 44, width: 212, height: 110, x: [0, Math.max(chain.draws - 1, 1)], y: padded(values || [0, 1])});
    var rank = new Axes({left: 280, top: 44, width: 112, height: 110, x: [0, 1], y: [0, most * 1.05], noY: true});
    var body = head(52, cut(chain.name, 40), [(data.superchains ? "nested R-hat " : "R-hat ") + fixed(chain.r_hat, 3) +
            ", bulk ESS " + fixed(chain.ess_bulk, 0) + ", tail ESS " + fixed(chain.ess_tail, 0)]) +
        trace.frame("draw") + rank.frame("rank among all") +
        rank.band("band c7", [0, 1], [expected - spread, expected - spread], [expected + spread, expected + spread]);
    return {height: 188, title: chain.name, body: chain.traces.reduce(function (all, list, i) {
        return all + trace.line("thin c" + i, count(0, list.length, chain.step), list) +
            rank.steps("thin c" + i, [0, 1], chain.ranks[i]);
    }, body)};
}

/* Rows of one variable on axes on which all intervals are wide enough to be seen: the widest first,
 * on four axes at most. */
function panelsOf(rows) {
    var panels = [], left = rows.slice();
    function width(row) { return row.quantiles[4] - row.quantiles[0] || Infinity; }
    function suits(panel, row) {
        var all = panel.concat([row]), range = all.reduce(function (r, one) { return rangeOf(one.quantiles, r); }, null);
        return !(range[1] - range[0] > 60 * Math.min.apply(null, all.map(width)));
    }
    left.sort(function (a, b) { return width(a) === width(b) ? rows.indexOf(a) - rows.indexOf(b) : width(b) - width(a); });
    while (left.length) {
        var panel = [];
        left = left.filter(function (row) { return !((panels.length > 2 || suits(panel, row)) && panel.push(row)); });
        panels.push(panel.sort(function (a, b) { return rows.indexOf(a) - rows.indexOf(b); }));
    }
    return panels;
}

function drawIntervals(forest) {
    var panels = [], longest = 0, top = 10, body = "", ROW = 18, i, j;
    for (i = 0; i < forest.rows.length; i = j) {
        for (j = i + 1; j < forest.rows.length && forest.rows[j].variable === forest.rows[i].variable;) j++;
        panels = panels.concat(panelsOf(forest.rows.slice(i, j)));
    }
    forest.rows.forEach(function (row) { longest = Math.max(longest, Math.min(row.name.length, 30)); });
    var left = longest * LETTER + 16;
    panels.forEach(function (rows) {
        var range = rows.reduce(function (r, row) { return rangeOf(row.quantiles, r); }, null);
        var axes = new Axes({left: left, top: top, width: WIDTH - left - 14, height: rows.length * ROW, x: padded(range),
                             y: [0, rows.length], noY: true});
        body += axes.frame();
        rows.forEach(function (row, k) {
            var y = rows.length - k - 0.5, q = row.quantiles;
            body += axes.line("line c0", [q[0], q[4]], [y, y]) + axes.line("thick c0", [q[1], q[3]], [y, y]) +
                axes.dots("mark ink", [q[2]], [y]) + text(left - 8, axes.py(y) + 4, "end", "", cut(row.name, 30));
        });
        top += rows.length * ROW + 34;
    });
    if (forest.more > 0) body += text(2, top + 4, "start", "soft", "and " + forest.more + " more, which the table or emass summary has");
    return {height: top + (forest.more > 0 ? 16 : -6), title: "Intervals of the parameters", body: body};
}

/* Why these variables: divergent draws gather there, or not so that it could be told from chance. */
function whyPairs(pairs) {
    if (pairs.gathering < 1)
        return (pairs.diverging < 1 ? "" : pairs.diverging + " divergent, " +
                (pairs.diverging === pairs.total ? "all of them" : "no clear pattern") + ": ") + "those that mix worst";
    if (pairs.gathering < pairs.variables.length)
        return pairs.diverging + " divergent, gathered in the first" + ["", " two", " three"][pairs.gathering - 1] + "; others mix worst";
    return pairs.diverging + " divergent: where they gather most";
}

/* How many of a list are in each of n equal parts of a range. */
function histogram(list, range, n) {
    var counts = count(0, n, 0);
    list.forEach(function (x) {
        var bin = Math.floor(n * (x - range[0]) / (range[1] - range[0]));
        if (bin >= 0 && bin < n) counts[bin]++;
    });
    return counts;
}

/* One panel for each two variables; on the diagonal the histogram of one, below its name, for which
 * the whole width is free. */
function drawPairs(pairs) {
    var v = pairs.variables, n = v.length, side = (WIDTH - 60 - 10 * (n - 1)) / n, high = 0.85 * side, top = 52;
    var outside = pairs.outside + " of " + pairs.total + " draws are outside" + (pairs.outside_divergent ? ", divergent ones too" : "");
    var body = text(2, 15, "start", "soft", whyPairs(pairs)) + (pairs.outside ? text(2, 30, "start", "soft", outside) : "");
    var ranges = v.map(function (one) { return one.range[0] < one.range[1] ? one.range : padded(one.range); });
    v.forEach(function (one, row) {
        for (var column = 0; column <= row; column++) {
            var counts = column < row ? null : histogram(one.draws, ranges[row], 20), other = v[column];
            var axes = new Axes({left: 52 + (side + 10) * column, top: top + (high + 22) * row, width: side, height: high, x: ranges[column],
                                 y: counts ? [0, rangeOf(counts, [0, 1])[1] * 1.05] : ranges[row], noX: row < n - 1, noY: column > 0 || row === 0});
            body += axes.frame() + (counts ? axes.steps("line c0", ranges[row], counts)
                : axes.dots("dot c0", other.draws, one.draws) + axes.dots("mark bad", other.divergent, one.divergent));
            if (counts) {
                var name = cut(one.name, 40), room = WIDTH - 2 - 7.2 * name.length;
                body += text(Math.max(Math.min(axes.left, room), 2), axes.top - 6, "start", "head", name);
            }
        }
    });
    return {height: top + (high + 22) * n, title: "Pairs of parameters", body: body};
}

function drawEnergy(energy) {
    var range = [-4 * energy.spread, 4 * energy.spread], high = rangeOf(energy.marginal.concat(energy.transition), [0, 0])[1];
    var axes = new Axes({left: 12, top: 40, width: WIDTH - 24, height: 150, x: range, y: [0, high * 1.05], noY: true});
    return {height: 226, title: "Energy", body:
        text(WIDTH - 12, 15, "end", "soft", "smallest E-BFMI " + fixed(energy.e_bfmi, 2) + " (expected: more than 0.3)") +
        axes.frame("energy, less the mean of its chain") + axes.steps("line c0", range, energy.marginal) +
        axes.steps("line c1 dash", range, energy.transition) + legend(12, "energy of draws", "its change from draw to draw")};
}

/* Chains that have a mass of their own follow one another: the iteration begins anew. */
function drawMass(mass) {
    var n = mass.iteration.length, large = mass.largest_eigenvalue.map(log10), small = mass.smallest_eigenvalue.map(log10);
    var axes = new Axes({left: 56, top: 40, width: WIDTH - 68, height: 150, x: padded(rangeOf(mass.iteration)),
                         y: ofLogs(rangeOf(large.concat(small))), logY: true});
    var body = text(WIDTH - 12, 15, "end", "soft", "condition number at the end " +
                    significant(mass.largest_eigenvalue[n - 1] / mass.smallest_eigenvalue[n - 1], 3)) +
        axes.frame("iteration of warmup") + legend(56, "largest eigenvalue", "smallest eigenvalue");
    for (var first = 0, end; first < n; first = end) {
        for (end = first + 1; end < n && mass.iteration[end] > mass.iteration[end - 1];) end++;
        [["line c0", "mark c0", large], ["line c1 dash", "mark c1", small]].forEach(function (curve) {
            var xs = mass.iteration.slice(first, end), ys = curve[2].slice(first, end);
            body += axes.line(curve[0], xs, ys) + axes.dots(curve[1], xs, ys);
        });
    }
    return {height: 226, title: "Inverse mass by iteration", body: body};
}

/* Left: the schedule, and how often neighbours do not swap. Right: evidence by round of warmup, and of the draws. */
function drawTempering(t) {
    var pairs = t.rejection.length, rounds = t.round_scans.length, rungs = count(0, pairs + 1, 1), at = count(1, rounds + 1, 1);
    function leg(k) {
        return t.round_log_evidence.filter(function (x, i) { return i % 2 === k; }).concat([t.log_evidence[k]]);
    }
    var a = leg(0), b = leg(1), late = a.concat(b).filter(function (v, i) { return i % (rounds + 1) > rounds / 2; });
    var swaps = new Axes({left: 52, top: 40, width: 150, height: 130, x: [0, pairs], y: [0, 1]});
    var evidence = new Axes({left: 262, top: 40, width: 130, height: 130, x: [1, rounds + 1], y: padded(rangeOf(late))});
    var body = head(52, "Rungs and swaps") + head(262, "Log evidence by leg") + swaps.frame("rung") + evidence.frame("round, then the draws") +
        swaps.line("line c0", rungs, t.beta) + swaps.dots("mark c0", rungs, t.beta) +
        swaps.line("line c1 dash", count(0.5, pairs, 1), t.rejection) + legend(52, "beta", "rejection") +
        evidence.line("line c0", at, a) + evidence.dots("mark c0", at, a) + evidence.line("line c1 dash", at, b) +
        evidence.dots("mark c1", at, b) + legend(262, "A", "B");
    return {height: t.index_process ? 396 : 208, title: "Tempering", body: body + (t.index_process ? indexProcess(t) : "")};
}

/* The rungs of the copies of the first ladder over time; one copy stands out. */
function indexProcess(t) {
    var n = t.index_process_scan.length, rungs = t.rejection.length + 1, target = t.beta.indexOf(1);
    var axes = new Axes({left: 52, top: 240, width: WIDTH - 66, height: 118, x: [0, t.index_process_scan[n - 1] + 1],
                         y: [0, rungs - 1]});
    return text(52, 226, "start", "head", "Rung of each copy of a ladder") + axes.frame("scan of the draws") +
        count(rungs - 1, rungs, -1).map(function (c) {
            return axes.line(c ? "line thin c7" : "line c0", t.index_process_scan, t.index_process.slice(c * n, (c + 1) * n));
        }).join("") + axes.line("line c1 dash", axes.x, [target, target]);
}

function drawSteps(s) {
    var isStep = s.statistic === "step_size";
    function change(list) { return isStep ? list.map(log10) : list; }
    var low = change(s.low), high = change(s.high);
    var axes = new Axes({left: 56, top: 24, width: WIDTH - 68, height: 128, x: [0, s.x[s.x.length - 1] * 1.01 + 1],
                         y: isStep ? ofLogs(rangeOf(low.concat(high))) : [0, 1], logY: isStep});
    return {height: 190, title: isStep ? "Step size by iteration" : "Acceptance by iteration", body:
        axes.frame("iteration", isStep ? "step size" : "acceptance rate") + axes.band("band c0", s.x, low, high) +
        axes.line("line c0", s.x, change(s.mean)) + (s.warmup > 0 ? axes.line("line c7 dash", [s.warmup, s.warmup], axes.y) : "")};
}

/* Beyond 1.5 one k is as bad as another: those marks are on the edge. */
function drawLoo(loo) {
    function k(list) { return list.map(function (o) { return Math.min(Math.max(o[1], -1.5), 1.5); }); }
    function marks(kind, list) { return axes.dots(kind, list.map(function (o) { return o[0]; }), k(list)); }
    var x = padded([0, loo.observations - 1]), y = padded(rangeOf(k(loo.good.concat(loo.bad)), [0, Math.min(Math.max(loo.good_k, 0) + 0.1, 1.5)]));
    var axes = new Axes({left: 44, top: 62, width: WIDTH - 58, height: 150, x: x, y: y});
    return {height: 250, title: "Pareto k of the observations", body:
        head(44, cut(loo.name, 40), ["elpd_loo " + fixed(loo.elpd, 1) + ", standard error " + fixed(loo.se, 1) + "; p_loo " + fixed(loo.p, 1),
            "k above " + fixed(loo.good_k, 2) + ": " + loo.high + " of " + loo.observations +
            (loo.high > 0 ? ", most of " + cut(loo.worst, 16) : "") + (loo.undefined > 0 ? "; not finite: " + loo.undefined : "")]) +
        axes.frame("observation") + axes.line("line c7 dash", x, [loo.good_k, loo.good_k]) + marks("mark c0", loo.good) +
        marks("mark bad", loo.bad)};
}

/* What a kind of figure shows, and how it looks when all is well. */
var KINDS = {
    chains: ["Chains of the parameters that mix worst", drawChain,
        "Left: the draws of each chain. When all is well, the chains look alike. Right: how the draws of each chain are spread over " +
        "the ranks of all draws. When all is well, 19 of 20 steps of a line are in the grey band. If there are more than eight " +
        "chains, the eight with the most extreme means are shown. If parameters are functions of one another, such as a coefficient " +
        "on two scales, only one of them is shown."],
    forest: ["Intervals", drawIntervals,
        "Median (dot), central 50 % (thick) and central 90 % (thin) of all draws. Each variable has its own axis. If some intervals " +
        "would be too short to see on one axis, the variable has several axes, with the widest intervals first."],
    pairs: ["Pairs", drawPairs,
        "Scatter plots of pairs of parameters; the diagonal shows the distribution of each parameter. Large marks are divergent " +
        "transitions: they gather where the posterior bends more sharply than the steps can follow. The parameters shown are those " +
        "whose ranks differ most between divergent draws and the others, if the difference is larger than chance explains in 19 of " +
        "20 cases. If there is no such parameter, those that mix worst are shown. emass report --var NAME chooses others. If a few " +
        "draws would make an axis more than twice as wide, it shows the central 99 % of the draws."],
    energy: ["Energy", drawEnergy,
        "When all is well, the dashed curve is about as wide as the other: a new momentum can then reach every energy. A narrow " +
        "dashed curve means that the chains explore the tails slowly (E-BFMI)."],
    mass: ["What warmup learned of the mass matrix", drawMass,
        "Largest and smallest eigenvalue of the inverse mass matrix after each M-step. Their ratio is the condition number. When all " +
        "is well, both stop changing before warmup ends."],
    tempering: ["Tempering", drawTempering,
        "Left: the temperatures (beta) of the rungs of a ladder, and the rejection rates of swaps between neighbours. When all is " +
        "well, the dashed line is level in each leg. Right: the log evidence of both legs after each round of warmup, and of the draws. When " +
        "all is well, both converge to one value. Early rounds may be outside the figure. Below: which copy of the first " +
        "ladder is on which rung after which scan; the dashed line is the posterior. When all is well, every copy, as the one in " +
        "colour, goes from end to end."],
    steps: ["Step size and acceptance", drawSteps,
        "Mean over the chains, and their range. The dashed line is the end of warmup. The file has statistics of warmup only with " +
        "output.save_warmup: true."],
    loo: ["Leaving out one observation", drawLoo,
        "Pareto k says how much the posterior changes if an observation is left out. Above the dashed line it changes too much to be " +
        "estimated from draws of the full posterior. Then elpd_loo, the expected log density of new observations, is not reliable. " +
        "Look first at such observations to find what the model does not fit."]
};

/* The kinds that the file has, that first which shows what is wrong: chains that do not agree, then
 * where divergent draws gather, then energies. */
function order(data) {
    var f = data.figures, names = Object.keys(KINDS).filter(function (name) {
        return f[name] && (!Array.isArray(f[name]) || f[name].length);
    });
    var disagree = f.chains.length && f.chains[0].r_hat > data.table.limit;
    function urgency(name) {
        return name === "chains" && disagree ? 3 : name === "pairs" && f.pairs.gathering > 0 ? 2
            : name === "energy" && f.energy.e_bfmi < 0.3 ? 1 : 0;
    }
    return names.map(function (name, i) { return {name: name, rank: i - 10 * urgency(name)}; })
        .sort(function (a, b) { return a.rank - b.rank; }).map(function (n) { return n.name; });
}

function svg(figure, size, inside) {
    return '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ' + WIDTH + " " + figure.height.toFixed(0) + '" role="img" aria-label="' +
        escaped(figure.title) + '"' + size + ">" + inside + "\n" + figure.body + "</svg>\n";
}

/* With colours and a size of its own, as programs for pictures need. */
function standalone(figure) {
    return svg(figure, ' width="' + WIDTH + '" height="' + figure.height.toFixed(0) + '"',
               "<style>" + styleOf(LIGHT).replace(/svg /g, "") + '</style><rect width="100%" height="100%" fill="#fff"/>');
}

/* [{kind, name of its file, figure, at: which of them}], that first which the verdict is about. */
function figures(data) {
    var list = [];
    order(data).forEach(function (kind) {
        var of = data.figures[kind], several = Array.isArray(of);
        (several ? of : [of]).forEach(function (numbers, k) {
            list.push({kind: kind, name: several ? kind + "-" + (k + 1) : kind, figure: KINDS[kind][1](numbers, data), at: list.length});
        });
    });
    return list;
}

function files(data) {
    return figures(data).reduce(function (list, f) { return list.concat([f.name, standalone(f.figure)]); }, []);
}

/* ---- the page ---- */

function heading(id, said) {
    return '<h2 id="' + id + '">' + said + "</h2>\n";
}

function facts(list) {
    return "<dl>\n" + list.filter(function (f) { return f[1] !== null && f[1] !== undefined; }).map(function (f) {
        return "<div><dt>" + f[0] + "</dt><dd>" + escaped(f[1]) + "</dd></div>\n";
    }).join("") + "</dl>\n";
}

/* The part up to the first colon in bold. */
function bold(said) {
    var colon = said.indexOf(":");
    return colon < 0 ? escaped(said) : "<b>" + escaped(said.slice(0, colon)) + "</b>" + escaped(said.slice(colon));
}

function items(list, show) {
    return list.length ? "<ul>\n" + list.map(function (said) { return "<li>" + show(said) + "</li>\n"; }).join("") + "</ul>\n" : "";
}

function verdict(data) {
    var colon = (data.verdict + ":").indexOf(":"), good = data.complete && data.grade !== "warning" && data.grade !== "wrong";
    return '<div class="verdict ' + data.grade + '"><b>' + (good ? "\u2713 " : "\u26a0 ") + (data.complete ? "" : "not finished, so far ") +
        escaped(data.verdict.slice(0, colon)) + "</b><br>" + escaped(data.verdict.slice(colon + 2)) +
        (data.complete ? "" : "<br>The run that wrote this file did not reach its end; the numbers are of the draws so far.") + "</div>\n";
}

function run(data) {
    var a = data.attributes;
    return facts([["model", a.model], ["sampler", a.sampler], ["chains \u00d7 draws", data.chains + " \u00d7 " + data.draws],
                  ["numbers of a draw, here", data.table.elements], ["iterations of warmup", a.tuning_steps], ["seed", a.seed],
                  ["ranks", a.ranks], ["cut", a.cut], ["made", a.created_at], ["by", a.inference_library],
                  ["version", a.inference_library_version]]);
}

function advice(data) {
    var file = escaped(data.file);
    return heading("next", "What to do next") + (items(data.advice, bold) ||
        "<p>Nothing stands against using these draws: chains agree, and there are enough effective draws for means and for the " +
        "quantiles of the table.</p>\n") +
        "<p>All rows: <code>emass summary " + file + "</code>. In Python: <code>arviz.from_netcdf(&quot;" + file + "&quot;)</code>.</p>\n";
}

function table(data) {
    var t = data.table, limited = t.columns.indexOf(t.limited) + 1;
    var rows = t.rows.map(function (row) {
        var cells = row.length === 2 && t.columns.length > 1 ? '<td class="note" colspan="' + t.columns.length + '">' + escaped(row[1]) + "</td>"
            : row.slice(1).map(function (cell, j) {
                return "<td" + (j + 1 === limited && Number(cell) > t.limit ? ' class="wrong"' : "") + ">" + escaped(cell) + "</td>";
            }).join("");
        return '<tr><th scope="row">' + escaped(row[0]) + "</th>" + cells + "</tr>\n";
    }).join("");
    return heading("table", "Table") + (t.lines > t.rows.length ? "<p>" + t.rows.length + " of " + t.elements +
            " rows, with those that mix worst among them; <code>emass summary</code> has all.</p>\n" : "") +
        '<div class="wide"><table><thead><tr><th></th>' + t.columns.map(function (c) { return '<th scope="col">' + c + "</th>"; }).join("") +
        "</tr></thead><tbody>\n" + rows + '</tbody></table></div>\n<p class="faint">mcse_mean: Monte Carlo standard error of the mean. ' +
        "ess_bulk, ess_tail: effective draws for the centre and for the 5 % and 95 % quantiles. r_hat: 1 where chains agree." +
        (data.superchains ? " r_hat_nested: the same for " + data.superchains + " superchains. A superchain is a set of short chains " +
         "that begin at one point. The verdict goes by r_hat_nested; r_hat is above 1 because the chains are short." : "") + "</p>\n";
}

/* Figures of one kind; the first of them all stands before the others of its kind. */
function section(kind, drawn, isMore) {
    return "<section>" + heading(kind + (isMore ? "-more" : ""), KINDS[kind][0] + (isMore ? ", continued" : "")) +
        '<div class="figures">\n' + drawn.map(function (f) {
            return "<figure>" + svg(f.figure, "", "") + '<figcaption><a class="faint" download="' + f.name + '.svg" data-figure="' + f.at +
                '" href="#' + kind + '">save as SVG</a></figcaption></figure>\n';
        }).join("") + "</div>\n" + (isMore ? "" : '<p class="faint">' + KINDS[kind][2] + "</p>\n") + "</section>\n";
}

function sections(data, drawn, first) {
    return '<div class="sections">\n' + order(data).map(function (kind) {
        var own = drawn.filter(function (f) { return f.kind === kind && f.at > 0; });
        return own.length ? section(kind, own, kind === first) : "";
    }).join("") + "</div>\n";
}

function cost(data) {
    var s = data.seconds, ess = data.smallest_ess, known = finite(ess), timed = finite(s) && s > 0, counted = data.gradients > 0;
    return heading("cost", "Time and gradients") + (data.attributes.warmup ? "<p>" + escaped(data.attributes.warmup) + "</p>\n" : "") +
        facts([["time in all", timed ? (s < 100 ? significant(s, 3) : fixed(s, 0)) + " s" : null],
               ["smallest ESS per second", timed && known ? significant(ess / s, 4) : null],
               ["leapfrog steps of the draws", counted ? fixed(data.gradients, 0) : null],
               ["smallest ESS per 1000 of them", counted && known ? significant(1000 * ess / data.gradients, 4) : null],
               ["smallest ESS", known ? fixed(ess, 0) : null]]);
}

function config(data) {
    var a = data.attributes;
    return a.config === null ? "" : heading("config", "The run, to be repeated") + '<p class="faint">Commit ' + escaped(a.git_commit || "unknown") +
        ", data " + escaped(a.data_hash || "unknown") + ". The same config and seed give the same draws on any number of ranks." +
        (a.merged > 0 ? " These are of " + a.merged + " runs: the config is that of the first, and the seeds are in the group runs." : "") +
        "</p>\n<details><summary>The config, every default filled in</summary><pre>" + escaped(a.config) + "</pre></details>\n";
}

function page(data) {
    var drawn = figures(data), first = drawn.length ? drawn[0].kind : "";
    return "<style>" + styleOf(LIGHT) + "@media (prefers-color-scheme:dark){" + styleOf(DARK) + "}</style>\n<h1>" + escaped(data.file) +
        "</h1>\n" + verdict(data) + '<div class="sections">\n' + (first ? section(first, drawn.slice(0, 1), false) : "") +
        "<section>" + advice(data) + run(data) + "</section></div>\n" + (data.model_part || "") + table(data) +
        (data.priors.length ? heading("priors", "Priors") + items(data.priors, escaped) : "") + sections(data, drawn, first) +
        (data.loo_hint ? heading("loo", "Leaving out one observation") +
         '<p class="faint">Leave-one-out cross-validation needs a group log_likelihood: ' + escaped(data.loo_hint) + ".</p>\n" : "") +
        cost(data) + config(data);
}

if (typeof document !== "undefined") {
    var report = JSON.parse(document.getElementById("data").textContent);
    document.title = report.file;
    document.body.insertAdjacentHTML("beforeend", page(report));
    document.body.addEventListener("click", function (event) {
        var at = event.target.getAttribute("data-figure");
        if (at !== null)
            event.target.href = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(standalone(figures(report)[at].figure));
    });
}
