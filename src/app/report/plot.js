/*
 * Plots as SVG text: axes, lines, dots, bands and histograms, in colours for light and dark pages.
 * ECMAScript 5 without any library. report.js, which follows it in the page, calls it.
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
    most = Math.max(Math.floor(most), 3);
    return name.length <= most ? name
        : name.slice(0, Math.floor(most / 2)) + "\u2026" + name.slice(name.length - (most - Math.floor(most / 2) - 1));
}

/* ---- the range of an axis: [low, high] ---- */

function rangeOf(list, range) {
    var low = range ? range[0] : Infinity, high = range ? range[1] : -Infinity;
    list.forEach(function (x) {
        if (finite(x)) {
            low = Math.min(low, x);
            high = Math.max(high, x);
        }
    });
    return [low, high];
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

function logs(list) {
    return list.map(function (x) { return Math.log(x) / Math.LN10; });
}

/* 1, 2 or 5 times a power of ten, about `most` of which fill the range. */
function tickStep(range, most) {
    var rough = (range[1] - range[0]) / most, power = Math.pow(10, Math.floor(Math.log(rough) / Math.LN10));
    var share = rough / power;
    return power * (share < 1.5 ? 1 : share < 3.5 ? 2 : share < 7.5 ? 5 : 10);
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
    var text = "svg text{font:12px system-ui,sans-serif;fill:" + colours.ink + "}svg .soft{fill:" + colours.soft + "}" +
        "svg .head{font-weight:600}svg path{fill:none;stroke-linecap:butt}svg .grid{stroke:" + colours.rule + "}" +
        "svg .frame{stroke:" + colours.soft + "}svg .line{stroke-width:1.6;stroke-linejoin:round}" +
        "svg .thin{stroke-width:.8;stroke-linejoin:round;opacity:.85}svg .dot{stroke-linecap:round;stroke-width:2.2;opacity:.45}" +
        "svg .mark{stroke-linecap:round;stroke-width:4.5}svg .thick{stroke-width:4;stroke-linecap:round}" +
        "svg .dash{stroke-dasharray:5 4}svg .thin{stroke-width:.5}svg .band{opacity:.2}";
    Object.keys(colours).forEach(function (name) {
        text += "svg ." + name + "{stroke:" + colours[name] + "}svg .band." + name + "{stroke:none;fill:" + colours[name] + "}";
    });
    return text.replace("svg .soft{stroke:" + colours.soft + "}", "").replace("svg .ink{", "svg path.ink{");
}

function text(x, y, anchor, kind, said) {
    return '<text x="' + x.toFixed(1) + '" y="' + y.toFixed(1) + '" text-anchor="' + anchor + '" class="' + kind + '">' +
        escaped(said) + "</text>";
}

function path(kind, d) {
    return '<path class="' + kind + '" d="' + d + '"/>\n';
}

/* box: left, top, width, height of the inner part; x, y: ranges; logY: y are decimal logarithms;
 * noX, noY: without numbers. */
function Axes(box) {
    this.box = box;
}

Axes.prototype = {
    px: function (x) {
        return this.box.left + this.box.width * (x - this.box.x[0]) / (this.box.x[1] - this.box.x[0]);
    },
    py: function (y) {
        return this.box.top + this.box.height * (1 - (y - this.box.y[0]) / (this.box.y[1] - this.box.y[0]));
    },
    at: function (x, y) {
        return this.px(x).toFixed(1) + " " + this.py(y).toFixed(1);
    },
    inside: function (x, y) {
        var b = this.box;
        return finite(x) && finite(y) && x >= b.x[0] && x <= b.x[1] && y >= b.y[0] && y <= b.y[1];
    },
    /* Numbers of the x axis that do not touch; those of narrow panels keep off their neighbours'. */
    xTicks: function () {
        var b = this.box, step = tickStep(b.x, Math.max(b.width / 60, 3)), out = "", end = -Infinity;
        for (var k = Math.ceil(b.x[0] / step); k * step <= b.x[1]; k++) {
            var at = this.px(k * step), said = significant(Math.abs(k) < 1e-9 ? 0 : k * step, 6), half = 6.6 * said.length / 2;
            out += path("grid", "M" + at.toFixed(1) + " " + b.top.toFixed(1) + "v" + b.height.toFixed(1));
            if (b.noX || at - half < end + 4 || (b.width < 200 && Math.abs(at - b.left - b.width / 2) >= 0.42 * b.width)) continue;
            out += text(at, b.top + b.height + 15, "middle", "soft", said);
            end = at + half;
        }
        return out;
    },
    yTick: function (y, said) {
        var b = this.box, at = this.py(y);
        return path("grid", "M" + b.left.toFixed(1) + " " + at.toFixed(1) + "h" + b.width.toFixed(1)) +
            text(b.left - 6, at + 4, "end", "soft", said);
    },
    yTicks: function () {
        var b = this.box, step = tickStep(b.y, b.height < 120 ? 4 : 5), out = "";
        for (var k = Math.ceil(b.y[0] / step); k * step <= b.y[1]; k++)
            out += this.yTick(k * step, significant(Math.abs(k) < 1e-9 ? 0 : k * step, 6));
        return out;
    },
    /* Powers of ten, every second, third ... of very many; of few 2 and 5 times them too. */
    logYTicks: function () {
        var b = this.box, decades = b.y[1] - b.y[0], step = Math.max(Math.ceil(decades / 5), 1), out = "";
        var shares = decades < 2.2 ? [1, 2, 5] : [1];
        for (var k = Math.floor(b.y[0] / step); k * step <= b.y[1]; k++)
            for (var i = 0; i < shares.length; i++) {
                var y = k * step + Math.log(shares[i]) / Math.LN10;
                if (y >= b.y[0] && y <= b.y[1]) out += this.yTick(y, significant(shares[i] * Math.pow(10, k * step), 3));
            }
        return out;
    },
    frame: function (xLabel, yLabel) {
        var b = this.box, below = b.top + b.height + (b.noX ? 15 : 30);
        return this.xTicks() + (b.noY ? "" : b.logY ? this.logYTicks() : this.yTicks()) +
            path("frame", "M" + b.left.toFixed(1) + " " + b.top.toFixed(1) + "v" + b.height.toFixed(1) + "h" + b.width.toFixed(1)) +
            (xLabel ? text(b.left + b.width, below, "end", "soft", xLabel) : "") +
            (yLabel ? text(b.left, b.top - 7, "start", "soft", yLabel) : "");
    },
    /* A line through points, broken where one is outside or not finite. */
    line: function (kind, xs, ys) {
        var d = "", pen = false;
        for (var i = 0; i < xs.length; i++) {
            var here = this.inside(xs[i], ys[i]);
            if (here) d += (pen ? "L" : "M") + this.at(xs[i], ys[i]);
            pen = here;
        }
        return path(kind, d);
    },
    dots: function (kind, xs, ys) {
        var d = "";
        for (var i = 0; i < xs.length; i++)
            if (this.inside(xs[i], ys[i])) d += "M" + this.at(xs[i], ys[i]) + "h0";
        return path(kind, d);
    },
    /* The area between two curves. */
    band: function (kind, xs, lows, highs) {
        var d = "", n = xs.length, b = this.box;
        for (var i = 0; i < 2 * n; i++) {
            var k = i < n ? i : 2 * n - 1 - i, y = i < n ? lows[k] : highs[k];
            if (!finite(y)) continue;
            y = Math.min(Math.max(y, b.y[0]), b.y[1]);
            if (this.inside(xs[k], y)) d += (d ? "L" : "M") + this.at(xs[k], y);
        }
        return path(kind, d ? d + "Z" : "");
    },
    /* A histogram over a range, as a line. */
    steps: function (kind, range, counts) {
        var d = "", width = (range[1] - range[0]) / counts.length, b = this.box;
        for (var i = 0; i < counts.length; i++)
            d += (i ? "L" : "M") + this.at(range[0] + i * width, Math.min(Math.max(counts[i], b.y[0]), b.y[1])) +
                "H" + this.px(range[0] + (i + 1) * width).toFixed(1);
        return path(kind, d);
    }
};

/* The two curves of a figure, named above it. */
function legend(left, solid, dashed) {
    var second = left + 30 + LETTER * solid.length + 18;
    return path("line c0", "M" + left + " 30h24") + text(left + 30, 34, "start", "", solid) +
        path("line c1 dash", "M" + second.toFixed(1) + " 30h24") + text(second + 30, 34, "start", "", dashed);
}

function count(from, n, step) {
    var list = [];
    for (var i = 0; i < n; i++) list.push(from + i * step);
    return list;
}
