/*
 * Plots as SVG text: axes, lines, dots, bands and histograms, in colours for light and dark pages.
 * ECMAScript 5 without any library and without a document: Duktape runs it for the figures as files.
 */
"use strict";

/* ---- text and numbers ---- */

function escaped(text) {
    return String(text).replace(/[<>&"']/g, function (c) { return "&#" + c.charCodeAt(0) + ";"; });
}

function finite(x) {
    return typeof x === "number" && isFinite(x);
}

function fixed(x, digits) {
    return finite(x) ? x.toFixed(digits) : x > 0 ? "inf" : x < 0 && x !== null ? "-inf" : "nan";
}

function significant(x, digits) {
    if (!finite(x)) return fixed(x);
    var size = Math.abs(x), number = Number(x.toPrecision(digits));
    return size > 0 && (size < 1e-4 || size >= 1e6) ? number.toExponential() : String(number);
}

/* A name in as many characters as there is room for: of a long one both ends, as the elements of one
 * variable differ in the last. */
function cut(name, most) {
    var head = Math.floor(most / 2);
    return name.length <= most ? name : name.slice(0, head) + "\u2026" + name.slice(name.length - (most - head - 1));
}

function count(from, n, step) {
    var list = [];
    for (var i = 0; i < n; i++) list.push(from + i * step);
    return list;
}

function log10(x) {
    return Math.log(x) / Math.LN10;
}

/* ---- the range of an axis: [low, high] ---- */

function rangeOf(list, range) {
    return list.filter(finite).reduce(function (r, x) { return [Math.min(r[0], x), Math.max(r[1], x)]; }, range || [Infinity, -Infinity]);
}

/* A little wider, so that nothing is on the edge; something around a single number. */
function padded(range) {
    if (!(range[0] <= range[1])) return [0, 1];
    var width = range[1] - range[0], size = Math.max(Math.abs(range[0]), Math.abs(range[1]));
    var pad = width > 1e-9 * size ? 0.04 * width : size > 0 ? 0.1 * size : 1;
    return [range[0] - pad, range[1] + pad];
}

/* Of decimal logarithms: wide enough for a tick. */
function ofLogs(range) {
    var missing = Math.max(0.6 - (range[1] - range[0]), 0) / 2;
    return padded([range[0] - missing, range[1] + missing]);
}

/* Where the numbers of an axis stand: at 1, 2 or 5 times a power of ten, about `most` of them; of
 * logarithms at powers of ten, and of few also at 2 and 5 times them. */
function ticks(range, most, isLog) {
    var width = range[1] - range[0], power = Math.pow(10, Math.floor(log10(width / most))), share = width / most / power;
    var step = isLog ? Math.max(Math.ceil(width / 5), 1) : power * (share < 1.2 ? 1 : share < 2.4 ? 2 : share < 6 ? 5 : 10);
    var list = [], times = isLog && width < 2.2 ? [1, 2, 5] : [1];
    for (var k = Math.floor(range[0] / step); k * step <= range[1]; k++)
        for (var i = 0; i < times.length; i++) {
            var at = k * step + log10(times[i]), value = isLog ? times[i] * Math.pow(10, k * step) : at;
            if (at >= range[0] && at <= range[1]) list.push({at: at, said: significant(value, isLog ? 3 : 6)});
        }
    return list;
}

/* ---- SVG: pictures are 400 units wide, and a line of text is 12 units high ---- */

var WIDTH = 400, LETTER = 6.4;

/* Okabe and Ito's colours, which people who are colour blind tell apart; darker on white, lighter on
 * black. */
var LIGHT = {ink: "#1c2430", soft: "#5d6979", rule: "#d9dee5", c0: "#0072b2", c1: "#c25a00", c2: "#00835f", c3: "#a8508a",
             c4: "#3a8fc4", c5: "#8a6d00", c6: "#d0483a", c7: "#4b5563", bad: "#c43c00"};
var DARK = {ink: "#e8ebf0", soft: "#a3adba", rule: "#38414d", c0: "#5ab4ec", c1: "#f0a040", c2: "#3ecfa0", c3: "#dd9cc8",
            c4: "#8fd0f5", c5: "#e6d35a", c6: "#ff8f7d", c7: "#b4bcc8", bad: "#ff9a5c"};

function styleOf(colours) {
    var text = "svg text{font:12px system-ui,sans-serif;fill:" + colours.ink + "}svg text.soft{fill:" + colours.soft + "}" +
        "svg .head{font-weight:600}svg path{fill:none;stroke-linecap:butt}svg .grid{stroke:" + colours.rule + "}" +
        "svg .frame{stroke:" + colours.soft + "}svg .line{stroke-width:1.6;stroke-linejoin:round}" +
        "svg .thin{stroke-width:.5;stroke-linejoin:round;opacity:.85}svg .dot{stroke-linecap:round;stroke-width:2.2;opacity:.45}" +
        "svg .mark{stroke-linecap:round;stroke-width:4.5}svg .thick{stroke-width:4;stroke-linecap:round}" +
        "svg .dash{stroke-dasharray:5 4}svg .band{opacity:.2}";
    return Object.keys(colours).reduce(function (all, name) {
        return all + "svg path." + name + "{stroke:" + colours[name] + "}svg .band." + name + "{stroke:none;fill:" + colours[name] + "}";
    }, text);
}

function text(x, y, anchor, kind, said) {
    return '<text x="' + x.toFixed(1) + '" y="' + y.toFixed(1) + '" text-anchor="' + anchor + '" class="' + kind + '">' +
        escaped(said) + "</text>";
}

function path(kind, d) {
    return '<path class="' + kind + '" d="' + d + '"/>\n';
}

/* A title, and lines below it. */
function head(left, title, lines) {
    return text(left, 15, "start", "head", title) + (lines || []).map(function (said, i) {
        return text(left, 32 + 17 * i, "start", "soft", said);
    }).join("");
}

/* The two curves of a figure, named above it. */
function legend(left, solid, dashed) {
    var second = left + 30 + LETTER * solid.length + 18;
    return path("line c0", "M" + left + " 30h24") + text(left + 30, 34, "start", "", solid) +
        path("line c1 dash", "M" + second.toFixed(1) + " 30h24") + text(second + 30, 34, "start", "", dashed);
}

/* box: left, top, width, height of the inner part; x, y: ranges; logY: y are decimal logarithms;
 * noX, noY: without numbers. */
function Axes(box) {
    for (var key in box) this[key] = box[key];
}

Axes.prototype = {
    px: function (x) { return this.left + this.width * (x - this.x[0]) / (this.x[1] - this.x[0]); },
    py: function (y) { return this.top + this.height * (1 - (y - this.y[0]) / (this.y[1] - this.y[0])); },
    at: function (x, y) { return this.px(x).toFixed(1) + " " + this.py(y).toFixed(1); },
    inside: function (x, y) {
        return finite(x) && finite(y) && x >= this.x[0] && x <= this.x[1] && y >= this.y[0] && y <= this.y[1];
    },
    /* Numbers of the x axis neither touch one another nor reach into the next panel. */
    frame: function (xLabel, yLabel) {
        var a = this, bottom = a.top + a.height, end = -Infinity;
        var out = ticks(a.x, Math.max(a.width / 56, 2)).map(function (t) {
            var at = a.px(t.at), half = 6.6 * t.said.length / 2, line = path("grid", "M" + at.toFixed(1) + " " + a.top.toFixed(1) + "v" + a.height.toFixed(1));
            if (a.noX || at - half < Math.max(end, a.left - 8) + 4 || at + half > a.left + a.width + 5) return line;
            end = at + half;
            return line + text(at, bottom + 15, "middle", "soft", t.said);
        }).join("");
        if (!a.noY)
            out += ticks(a.y, a.height < 120 ? 4 : 5, a.logY).map(function (t) {
                return path("grid", "M" + a.left.toFixed(1) + " " + a.py(t.at).toFixed(1) + "h" + a.width.toFixed(1)) +
                    text(a.left - 6, a.py(t.at) + 4, "end", "soft", t.said);
            }).join("");
        return out + path("frame", "M" + a.left.toFixed(1) + " " + a.top.toFixed(1) + "v" + a.height.toFixed(1) + "h" + a.width.toFixed(1)) +
            (xLabel ? text(a.left + a.width, bottom + 30, "end", "soft", xLabel) : "") +
            (yLabel ? text(a.left, a.top - 7, "start", "soft", yLabel) : "");
    },
    /* A line through points, broken where one is outside or not finite. */
    line: function (kind, xs, ys) {
        var a = this, pen = false;
        return path(kind, xs.map(function (x, i) {
            var here = a.inside(x, ys[i]), step = here ? (pen ? "L" : "M") + a.at(x, ys[i]) : "";
            pen = here;
            return step;
        }).join(""));
    },
    dots: function (kind, xs, ys) {
        var a = this;
        return path(kind, xs.map(function (x, i) { return a.inside(x, ys[i]) ? "M" + a.at(x, ys[i]) + "h0" : ""; }).join(""));
    },
    /* The area between two curves, as far as it is inside. */
    band: function (kind, xs, lows, highs) {
        var a = this, d = xs.concat(xs.slice().reverse()).map(function (x, i) {
            var y = i < xs.length ? lows[i] : highs[2 * xs.length - 1 - i];
            return finite(y) ? a.at(x, Math.min(Math.max(y, a.y[0]), a.y[1])) : "";
        }).filter(String).join("L");
        return path(kind, d ? "M" + d + "Z" : "");
    },
    /* A histogram over a range, as a line. */
    steps: function (kind, range, counts) {
        var a = this, width = (range[1] - range[0]) / counts.length;
        return path(kind, counts.map(function (n, i) {
            return (i ? "L" : "M") + a.at(range[0] + i * width, Math.min(Math.max(n, a.y[0]), a.y[1])) +
                "H" + a.px(range[0] + (i + 1) * width).toFixed(1);
        }).join(""));
    }
};
