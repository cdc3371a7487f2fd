// The parts of the site's scripts that touch no page. Run by test_scripts.py: node --test tests/browser/

import assert from "node:assert/strict";
import { test } from "node:test";

const JS = "../../subsystem/website/static/js/";
const { parseState, formatState, parts } = await import(`${JS}state.js`);
const { parseQuery, matches, facets, fits, toggled, asksFor, writePart } = await import(`${JS}picker.js`);
const format = await import(`${JS}format.js`);
const { logSplits, evenSplits, tickLabels, percentLabels } = format;
const points = await import(`${JS}points.js`);
const ratios = await import(`${JS}ratios.js`);
const rows = await import(`${JS}compare/rows.js`);
const nights = await import(`${JS}compare/nights.js`);
const sorting = await import(`${JS}tables.js`);
const { operatorTree, boxes, depthOf } = await import(`${JS}receipt/tree.js`);
const { joined, checkVersion, catalogue, SiteError } = await import(`${JS}data.js`);
const { findable, search } = await import(`${JS}search/index.js`);
const { makeView, needsPast, periodOf, recentBoundary } = await import(`${JS}explore/view.js`);
const { flat } = await import(`${JS}facts.js`);
const { dateAxis, wholeRange } = await import(`${JS}chart/axis.js`);
const { commitAxis, nightAxis } = await import(`${JS}chart/ordinal.js`);
const { fit } = await import(`${JS}chart/fit.js`);
const { keysOf } = await import(`${JS}explore/grouping.js`);
const { withMeans } = await import(`${JS}explore/groups.js`);
const { csvOf, rowsOf } = await import(`${JS}explore/csv.js`);
const { pictureOf } = await import(`${JS}chart/picture.js`);
const { placeCard } = await import(`${JS}chart/placing.js`);

const HOSTILE = `<img src=x onerror=alert(1)> "q" & = # % , 編譯器`;

function shardOf(values, more = {}) {
  const stamp = values.map((_v, at) => format.stampOf(Date.UTC(2026, 0, 1 + at, 3) / 1e3));
  const nothing = values.map(() => null);
  return {
    id: "a",
    name: "a",
    experiment: "e",
    metric: "run_time",
    unit: "ms",
    direction: "lower",
    labels: {},
    stamp,
    value: values,
    low: nothing,
    high: nothing,
    std: nothing,
    samples: nothing,
    tvm: values.map(() => 0),
    tvms: ["v0"],
    machine: values.map(() => 0),
    machines: ["m"],
    code: values.map(() => 0),
    noise: null,
    steps: [],
    annotations: [],
    incidents: [],
    ...more,
  };
}

function entryOf(id, more = {}) {
  return {
    id,
    experiment: "e",
    title: "E",
    page: "experiments/e.html",
    name: `e ${id}`,
    metric: "run_time",
    unit: "ms",
    direction: "lower",
    labels: {},
    text: `e ${id}`,
    ...more,
  };
}

test("a state survives the way into the address and back, whatever is in it", () => {
  for (const state of [{}, { series: "a,b", q: HOSTILE }, { at: "x@20260101T000000Z", q: "a+b c" }]) {
    assert.deepEqual(parseState(formatState(state)), state);
  }
  assert.equal(formatState({ series: "a,b", from: "", at: "a@b" }), "#series=a,b&at=a@b");
});

test("an address that cannot be decoded loses that part alone", () => {
  assert.deepEqual(parseState("#a=%E0%A4%A&b=1&c&=d"), { b: "1" });
  assert.deepEqual(parts("a,,b,a"), ["a", "b"]);
  assert.deepEqual(parts(undefined), []);
});

test("words must all occur, of one key any value will do, different keys must all fit", () => {
  const item = { text: "Relax mlp run time", labels: { engine: "tvm", workload: "network.mlp", note: HOSTILE } };
  const fit = (text) => matches(item, parseQuery(text));
  for (const text of [
    "",
    "mlp RELAX",
    "engine=TVM",
    "engine=torch engine=tvm",
    "workload=*mlp",
    "workload=net*m*p",
    '"run time"',
    writePart("note", HOSTILE),
  ]) {
    assert.equal(fit(text), true, text);
  }
  for (const text of [
    "bert",
    "engine=torch",
    "engine=tvm workload=bert",
    "nokey=1",
    "workload=mlp*",
    "workload=network.mlp*mlp",
  ]) {
    assert.equal(fit(text), false, text);
  }
});

test("a star stands for any text and never counts a sign twice", () => {
  assert.equal(fits("aa", "a*a"), true);
  assert.equal(fits("a", "a*a"), false);
  assert.equal(fits("abcbd", "a*b*bd"), true);
  assert.equal(fits("abd", "a*b*bd"), false);
});

test("facets count what each value would give, and leave out keys with one value", () => {
  const items = [
    ["tvm", "mlp"],
    ["tvm", "bert"],
    ["torch", "mlp"],
  ].map(([engine, net]) => ({ text: net, labels: { engine, net, same: "x" } }));
  const found = facets(items, parseQuery("engine=tvm"));
  assert.deepEqual([...found.keys()], ["engine", "net"]);
  assert.deepEqual(found.get("engine"), [
    ["tvm", 2],
    ["torch", 1],
  ]);
  assert.deepEqual(found.get("net"), [
    ["bert", 1],
    ["mlp", 1],
  ]);
});

test("toggling a value adds it and takes it out again", () => {
  const added = toggled("mlp engine=tvm", "note", "two words");
  assert.equal(added, 'mlp engine=tvm note="two words"');
  assert.equal(asksFor(parseQuery(added), "note", "two words"), true);
  assert.equal(toggled(added, "note", "two words"), "mlp engine=tvm");
  assert.equal(toggled("engine=TVM x", "engine", "tvm"), "x");
});

test("numbers keep the digits that they deserve", () => {
  const cases = [
    [0, "0"],
    [1234.5678, "1235"],
    [0.00012345, "0.0001234"],
    [9.99996, "10.00"],
    [12345678, "1.235e+7"],
    [-2.5, "-2.500"],
    [95130, "95130"],
  ];
  for (const [value, words] of cases) assert.equal(format.number(value), words, String(value));
  assert.equal(format.quantity(0.6147, "ms"), "0.6147 ms");
  assert.equal(format.quantity(0.0061, "ms"), "6.100 µs");
  assert.equal(format.quantity(61234.5, "ms"), "61.23 s");
  assert.equal(format.quantity(95130, "bytes"), "95.13 kB");
  assert.equal(format.quantity(512, "bytes"), "512 bytes");
  assert.equal(format.quantity(null, "ms"), "\u2013");
  assert.equal(format.quantity(3, ""), "3");
  assert.equal(format.interval(0.999, 1.001, "ms"), "0.9990 to 1.001 ms");
});

test("changes are told as percent, never as nonsense", () => {
  const cases = [
    [1.0212, "+2.1 %"],
    [0.9996, "\u22120.04 %"],
    [1, "0 %"],
    [1.2, "+20.0 %"],
    [3.2, "+220 %"],
    [0.25, "\u221275.0 %"],
    [0.0027, "\u221299.7 %"],
    [0.00001, "\u221299.9 %"],
    [-1, "\u2013"],
    [null, "\u2013"],
    [Infinity, "\u2013"],
  ];
  for (const [ratio, words] of cases) assert.equal(format.change(ratio), words);
});

test("moments are UTC whatever the time zone of the reader", () => {
  assert.equal(format.seconds("20261121T031500Z"), Date.UTC(2026, 10, 21, 3, 15) / 1e3);
  assert.equal(format.stampOf(format.seconds("20261121T031500Z")), "20261121T031500Z");
  assert.equal(format.moment("20261121T031500Z"), "2026-11-21 03:15 UTC");
  assert.equal(format.day("2026-11-01"), "2026-11-01");
  assert.equal(Number.isNaN(format.seconds("soon")), true);
});

test("series of different nights share one axis, and a line breaks where a week is missing", () => {
  const daily = shardOf([1, 2, 3, 4]);
  const gap = shardOf([5, 6], { stamp: ["20260101T030000Z", "20260120T030000Z"] });
  const axis = dateAxis([daily, gap]);
  assert.equal(axis.xs.length, 6);
  const { values, places } = points.onAxis(gap, axis);
  assert.deepEqual(values, [5, null, null, null, null, 6]);
  assert.deepEqual(places, [0, -1, -1, -1, -1, 1]);
  assert.deepEqual(points.onAxis(daily, axis, 2).values, [0.5, 1, 1.5, 2, undefined, undefined]);
});

test("on an axis of nights each stands beside the last, and a line still breaks where a week is missing", () => {
  const shard = shardOf([1, 2, 3], { stamp: ["20251231T030000Z", "20260101T030000Z", "20260120T030000Z"] });
  const axis = nightAxis([shard]);
  assert.deepEqual(axis.labels, ["2025-12-31", "2026-01-01", "01-20"]);
  assert.deepEqual(axis.xs, [0, 1, 1.5, 2]);
  assert.deepEqual(points.onAxis(shard, axis).values, [1, 2, null, 3]);
  const period = axis.periodOf([0.5, 2.5]);
  assert.deepEqual(period.map(format.stampOf), ["20260101T030000Z", "20260120T030000Z"]);
  assert.deepEqual(axis.rangeOf(period), [0.5, 2.5]);
  assert.deepEqual(axis.rangeOf([0, 1]), axis.whole, "no night in view");
});

test("on an axis of commits the nights of one stand together, in the order of the first nights", () => {
  const commits = ["a", "b", "c"].map((digit) => digit.repeat(40));
  const shard = shardOf([1, 2, 3, 4, 5], { tvms: commits, tvm: [1, 1, 0, 1, 2] });
  const other = shardOf([7, 8], { tvms: ["0.27.0"], tvm: [0, null] });
  const axis = commitAxis([shard, other]);
  assert.deepEqual(axis.labels, ["0.27.0", "bbbbbbbbb \u00d73", "unknown", "aaaaaaaaa", "ccccccccc"]);
  const { values, places } = points.onAxis(shard, axis);
  assert.deepEqual(values, [undefined, 1, 2, 4, undefined, 3, 5], "the night that went back stands with its commit");
  assert.deepEqual(places, [-1, 0, 1, 3, -1, 2, 4]);
  assert.deepEqual(axis.xs.map(Math.round), [0, 1, 1, 1, 2, 3, 4]);
  assert.ok(axis.xs.every((x, at) => !at || x > axis.xs[at - 1]));
  assert.deepEqual(points.onAxis(other, axis).values[4], 8);
});

test("the baseline is the median of the first ten nights in view, without nights that have no value", () => {
  const shard = shardOf([100, 100, null, ...Array(9).fill(2), 50]);
  assert.equal(points.baseline(shard, points.timesOf(shard)[2]), 2);
  assert.equal(points.baseline(shardOf([null]), 0), null);
  assert.equal(points.median([3, 1, 2, 10]), 2.5);
});

test("levels are the medians between steps", () => {
  const shard = shardOf([1, 1, 3, 3, 3]);
  shard.steps = [{ stamp: shard.stamp[2], size: 2, kind: "compiler" }];
  assert.deepEqual(
    points.levels(shard).map((one) => one.level),
    [1, 3],
  );
});

test("the change from the previous night passes over nights without a value", () => {
  const shard = shardOf([2, null, 3]);
  assert.equal(points.fromPrevious(shard, 2), 1.5);
  assert.equal(points.fromPrevious(shard, 0), null);
});

test("marks say what became another and when, each once", () => {
  const shard = shardOf([1, 1, 1, 1], {
    tvm: [0, 1, 1, null],
    tvms: ["a", "b"],
    machine: [0, 0, 1, 1],
    machines: ["m, Linux 6.1", "m, Linux 6.8"],
    annotations: [{ stamp: "20260102T030000Z", kind: "release", words: "0.27" }],
    incidents: [
      { id: "i", state: "confirmed", begin: "20260103T030000Z", end: null, percent: 3, headline: "worse", worse: true },
    ],
  });
  const marks = points.marks([shard, shard]);
  assert.deepEqual(
    marks.map((mark) => [mark.kind, mark.words]),
    [
      ["tvm", "b"],
      ["annotation", "release: 0.27"],
      ["machine", "Linux 6.8"],
      ["incident", "worse"],
    ],
  );
});

test("the interval of a median holds it for 95 of 100 samples, whatever they are drawn from", () => {
  let seed = 7;
  const random = () => (seed = (seed * 1103515245 + 12345) % 2147483648) / 2147483648;
  for (const count of [6, 9, 20, 51]) {
    let held = 0;
    for (let turn = 0; turn < 2000; turn += 1) {
      const sample = Array.from({ length: count }, random).sort((a, b) => a - b);
      const [low, high] = ratios.medianInterval(sample);
      held += low <= 0.5 && 0.5 <= high ? 1 : 0;
    }
    assert.ok(held >= 0.93 * 2000, `${count}: ${held}`);
    assert.ok(held <= 0.998 * 2000, `${count}: ${held} is too wide`);
  }
  assert.deepEqual(ratios.medianInterval([1, 2, 3]), [1, 3]);
  assert.deepEqual(ratios.medianInterval(Array.from({ length: 2000 }, (_v, at) => at)), [955, 1044]);
});

test("sides are nights, versions or machines, and survive the address", () => {
  for (const text of ["20260101T030000Z", "tvm:0.27.0", "machine:a, b: c"])
    assert.equal(ratios.formatSide(ratios.parseSide(text)), text);
  assert.deepEqual(ratios.parseSide("night:20260101T030000Z"), { kind: "night", value: "20260101T030000Z" });
  assert.equal(ratios.parseSide(""), null);
});

const pointOf = (value, more = {}) => ({ stamp: "20260101T030000Z", value, low: value, high: value, code: null, ...more });

test("a side is summarised by its nights", () => {
  const night = ratios.summarise([pointOf(10, { low: 9, high: 11 })]);
  assert.deepEqual([night.value, night.low, night.high, night.nights], [10, 9, 11, 1]);
  const version = ratios.summarise([pointOf(1), pointOf(2), pointOf(3, { stamp: "20260103T030000Z" })]);
  assert.deepEqual([version.value, version.low, version.high, version.nights], [2, 1, 3, 3]);
  assert.equal(version.stamp, "20260103T030000Z");
  assert.equal(ratios.summarise([]), null);
});

test("a TVM is known by its commit or as a night's record writes it", () => {
  assert.ok(ratios.isVersion("0.27.0, commit 7b5acb32b", "7b5acb32b0123"));
  assert.ok(ratios.isVersion("7b5acb32b0123", "7b5acb32b0123"));
  assert.ok(!ratios.isVersion("0.28.0, commit 1234567", "7b5acb32b0123"));
});

test("a change within the noise of the series is not real, one beyond it is, of an unknown one nobody can tell", () => {
  const side = (value, nights = 1) => ({ value, low: value * 0.999, high: value * 1.001, nights, code: 1, stamp: "" });
  assert.equal(ratios.compare(side(1), side(1.02), 0.01).real, false);
  assert.equal(ratios.compare(side(1), side(1.06), 0.01).real, true);
  assert.equal(ratios.compare(side(1), side(0.94), 0.01).real, true);
  assert.equal(ratios.compare(side(1, 25), side(1.02, 25), 0.01).real, true);
  assert.equal(ratios.compare(side(1), side(1.5), null).real, null);
  assert.equal(ratios.compare(side(0), side(1), 0.01), null);
  const wide = { ...side(1.06), low: 0.9, high: 1.3 };
  assert.equal(ratios.compare(side(1), wide, 0.01).real, false);
});

test("the interval of a ratio widens with that of either side and with the noise", () => {
  const exact = { value: 2, low: 2, high: 2, nights: 1, code: null, stamp: "" };
  const rough = { ...exact, low: 1.8, high: 2.2 };
  const change = ratios.compare(exact, rough, 0);
  assert.ok(Math.abs(change.low - 0.9) < 1e-9 && Math.abs(change.high - 1.1) < 1e-9);
  assert.ok(ratios.compare(exact, exact, 0.01).high > 1.02);
  assert.equal(ratios.compare(exact, exact, 0).real, false);
});

test("a geometric mean of a doubling and a halving is no change", () => {
  const mean = ratios.geometricMean([
    { ratio: 2, low: 1.9, high: 2.1 },
    { ratio: 0.5, low: 0.5, high: 0.5 },
  ]);
  assert.ok(Math.abs(mean.ratio - 1) < 1e-12 && mean.low < 1 && mean.high > 1);
  assert.equal(mean.count, 2);
  assert.equal(ratios.geometricMean([]), null);
});

const nightWith = (stamp, values, { reference = "r", tvm = "t", machine = "m", experiment = "cnn" } = {}) => ({
  stamp,
  experiments: { [experiment]: { tvm, machine, reference } },
  points: new Map(Object.entries(values).map(([id, value]) => [id, pointOf(value, { stamp })])),
});
const [NIGHT_A, NIGHT_B] = ["20260101T030000Z", "20260102T030000Z"];
const sideAt = (stamp, night) => ({ side: { kind: "night", value: stamp }, nights: [night] });
const noisy = (id, more = {}) => ({ ...entryOf(id, { experiment: "cnn", ...more }), noise: 0.001, ratioNoise: null, ...more });

test("what got worse comes first whichever direction is better, and means do not mix metrics", () => {
  const all = [
    noisy("same"),
    noisy("slower"),
    noisy("faster"),
    noisy("less", { direction: "higher", metric: "rate" }),
    noisy("new"),
    noisy("gone"),
    noisy("young", { noise: null }),
  ];
  const [a, b] = [
    { same: 1, slower: 1, faster: 1, less: 1, gone: 1, young: 1 },
    { same: 1, slower: 1.1, faster: 0.8, less: 0.5, new: 1, young: 2 },
  ];
  const made = rows.byNeed(rows.makeRows(all, sideAt(NIGHT_A, nightWith(NIGHT_A, a)), sideAt(NIGHT_B, nightWith(NIGHT_B, b))));
  assert.deepEqual(
    made.map((row) => [row.entry.id, rows.stateOf(row)]),
    [
      ["less", "worse"],
      ["slower", "worse"],
      ["faster", "better"],
      ["young", "unknown"],
      ["gone", "only-a"],
      ["new", "only-b"],
      ["same", "noise"],
    ],
  );
  assert.deepEqual(
    rows.grouped(made, "engine").map((group) => [group.metric, group.count]),
    [
      ["rate", 1],
      ["run_time", 4],
    ],
  );
});

test("a comparison is good only where every series of A is there and was judged, and of itself says nothing", () => {
  const all = ["x", "y", "z"].map((id) => noisy(id));
  const young = noisy("young", { noise: null });
  const said = (a, b, { series = all, isItself = false } = {}) =>
    rows.inOneSentence(
      rows.makeRows(series, sideAt(NIGHT_A, nightWith(NIGHT_A, a)), sideAt(NIGHT_B, nightWith(NIGHT_B, b))),
      isItself,
    );
  const whole = { x: 1, y: 1, z: 1 };
  assert.equal(said(whole, whole), "\u2713 None of 3 series changed.");
  assert.equal(said(whole, { x: 1 }), "\u2205 None of 1 series changed; 2 only in A.");
  assert.equal(said({ x: 1 }, whole), "\u2713 None of 1 series changed; 2 only in B.");
  assert.equal(said(whole, { x: 1.1, y: 0.9 }), "\u2716 B against A: 1 worse, 1 better of 2 series; 1 only in A.");
  assert.equal(said(whole, {}), "\u2205 Nothing was measured on both sides; 3 only in A.");
  const also = { series: [...all, young] };
  assert.equal(
    said({ ...whole, young: 1 }, { ...whole, young: 2 }, also),
    "None of 3 series changed; 1 not judged, after too few nights.",
  );
  assert.equal(said({ young: 1 }, { young: 2 }, also), "No series could be judged; 1 not judged, after too few nights.");
  assert.equal(said(whole, whole, { isItself: true }), "A and B are the same: there is nothing to compare.");
});

test("where both nights were measured beside one reference, their ratios to it are compared", () => {
  const labels = { experiment: "cnn", workload: "x" };
  const time = noisy("time", { labels: { ...labels, metric: "run_time" } });
  const ratio = noisy("ratio", { metric: "run_time_ratio", unit: "", labels: { ...labels, metric: "run_time_ratio" } });
  const a = sideAt(NIGHT_A, nightWith(NIGHT_A, { time: 10, ratio: 1 }));
  const loaded = { time: 15, ratio: 1.001 };
  const [row, ...rest] = rows.makeRows([time, ratio], a, sideAt(NIGHT_B, nightWith(NIGHT_B, loaded)));
  assert.deepEqual([rest.length, row.basis, rows.stateOf(row), row.b.value], [0, "reference", "noise", 15]);
  const elsewhere = sideAt(NIGHT_B, nightWith(NIGHT_B, loaded, { reference: "other" }));
  const [alone] = rows.makeRows([time, ratio], a, elsewhere);
  assert.deepEqual([alone.basis, rows.stateOf(alone)], ["times", "worse"]);
});

test("of exact numbers any difference is real, and is told in their unit", () => {
  const kernels = noisy("kernels", { metric: "kernels", unit: "kernels", noise: 0, direction: "lower" });
  const [row] = rows.makeRows(
    [kernels],
    sideAt(NIGHT_A, nightWith(NIGHT_A, { kernels: 10000 })),
    sideAt(NIGHT_B, nightWith(NIGHT_B, { kernels: 10001 })),
  );
  assert.deepEqual([rows.stateOf(row), rows.changeText(row), rows.bounds(row)], ["worse", "+1 kernel", ""]);
});

test("a side of a version or a machine takes the nights that had it", () => {
  const measured = [
    nightWith("20260101T030000Z", { x: 1 }, { tvm: "7b5acb32b0", machine: "m1" }),
    nightWith("20260102T030000Z", { x: 2 }, { tvm: "7b5acb32b0", machine: "m2" }),
    nightWith("20260103T030000Z", { x: 3 }, { tvm: "c7b458e94", machine: "m2", reference: "s" }),
  ];
  const values = (kind, value) => nights.pointsOf("x", "cnn", { kind, value }, measured);
  assert.deepEqual(values("tvm", "0.27.0, commit 7b5acb32b").points.map((point) => point.value), [1, 2]);
  assert.deepEqual(values("machine", "m2").points.map((point) => point.value), [2, 3]);
  assert.deepEqual([values("machine", "m2").reference, values("machine", "m1").reference], ["", "r"]);
  const read = nights.nightOf({ stamp: "s", experiments: {}, id: ["p", "q"], value: [1, null], low: [null, 1], high: [2, 2], code: [7, 7] });
  assert.deepEqual([...read.points], [["p", { stamp: "s", value: 1, low: 1, high: 2, code: 7 }]]);
});

test("a point measured on two TVMs is put together from its two series, and only where none has both sides", () => {
  const of = (id, experiment, a, b, more = {}) => ({
    entry: noisy(id, { experiment, labels: { experiment, metric: "run_time", verdict: id, ...more } }),
    a: a && { ...pointOf(a), nights: 1 },
    b: b && { ...pointOf(b), nights: 1 },
    change: null,
    basis: "times",
    sameCode: false,
  });
  const main = of("main", "cnn", null, 1);
  const release = of("release", "cnn@release", 2, null);
  const another = of("another", "cnn@release", 1, null, { batch: "8" });
  const [one, rest] = rows.joined([main, release, another]);
  assert.deepEqual([one.entry.id, one.other.id, one.a.value, one.b.value, one.change.ratio], ["main", "release", 2, 1, 0.5]);
  assert.equal(rest, another);
  const both = of("both", "cnn", 1, 1);
  assert.deepEqual(rows.joined([both, release]), [both, release]);
});

test("a comparison as CSV holds numbers in full and no formula", () => {
  const [row] = rows.makeRows(
    [noisy("x", { name: '=1+"2",3' })],
    sideAt(NIGHT_A, nightWith(NIGHT_A, { x: 1.23456789 })),
    sideAt(NIGHT_B, nightWith(NIGHT_B, { x: 2.5 })),
  );
  const [, line] = rows.csv([row]).split("\n");
  assert.ok(line.startsWith(`"'=1+""2"",3",x,run_time,ms,1.23456789,2.5,`), line);
  assert.ok(line.endsWith(",times,worse"), line);
});

test("cells sort as numbers where they are numbers, and empty ones come last", () => {
  const cell = (text, sort) => ({ textContent: text, dataset: sort === undefined ? {} : { sort }, querySelector: () => null });
  const keys = [cell("9 %"), cell("", ""), cell("12 ms", "0.012"), cell("\u22123.1 %"), cell("abc10"), cell("abc9")].map(sorting.sortKey);
  assert.deepEqual(keys, [9, null, 0.012, -3.1, "abc10", "abc9"]);
  const sorted = (down) => [...keys.slice(0, 4)].sort((x, y) => sorting.compareKeys(x, y, down));
  assert.deepEqual(sorted(false), [-3.1, 0.012, 9, null]);
  assert.deepEqual(sorted(true), [9, 0.012, -3.1, null]);
  assert.ok(sorting.compareKeys("abc9", "abc10", false) < 0);
});

test("Markdown of a comparison holds names as text", () => {
  const side = { value: 1, low: 1, high: 1, nights: 1, code: null, stamp: "" };
  const text = rows.markdown(
    [
      {
        entry: entryOf("x", { name: "a|b `c` <d>\n[e](f)" }),
        a: side,
        b: side,
        change: ratios.compare(side, side, 0),
        basis: "times",
        sameCode: false,
      },
    ],
    { a: "A", b: "B", url: "http://x/#a", rule: "rule" },
  );
  assert.ok(text.includes("| a\\|b \\`c\\` \\<d\\> \\[e\\](f) |"), text);
});

test("axes have round marks, and enough of them on a logarithmic scale", () => {
  assert.deepEqual(evenSplits(0.3, 1.02, 5), [0.4, 0.6, 0.8, 1]);
  assert.deepEqual(logSplits(0.9, 100), [1, 2, 5, 10, 20, 50, 100]);
  assert.ok(logSplits(7.3, 7.9).length >= 3);
  assert.ok(logSplits(1e-6, 1e9).length <= 16);
  assert.deepEqual(tickLabels([0.0002, 0.0004], "ms"), { labels: ["0.2", "0.4"], unit: "µs" });
  assert.deepEqual(percentLabels([0.9, 1, 1.1]), ["\u221210 %", "0 %", "+10 %"]);
});

test("operators stand below their common name, the longest first, and boxes fill the whole", () => {
  const tree = operatorTree(
    [
      ["conv_1", 1, 60],
      ["conv_2", 1, 20],
      ["softmax", 2, 30],
      ["42", 1, 10],
    ],
    "one run",
  );
  assert.deepEqual(
    tree.children.map((one) => [one.name, one.ns, one.children.length]),
    [
      ["conv", 80, 2],
      ["softmax", 30, 0],
      ["42", 10, 0],
    ],
  );
  const made = boxes(tree, 0);
  const lowest = made.filter((box) => box.depth === 1).reduce((sum, box) => sum + box.width, 0);
  assert.ok(Math.abs(lowest - 1) < 1e-12);
  assert.equal(depthOf(tree), 3);
  assert.equal(boxes(operatorTree([], "nothing"), 0.01).length, 1);
});

test("past and recent shards become one, with one list of versions", () => {
  const past = shardOf([1, 2], { tvms: ["a", "b"], tvm: [0, 1], code: [0, 1] });
  const recent = shardOf([3, 4], {
    tvms: ["b", "c"],
    tvm: [0, 1],
    code: [0, null],
    noise: 0.01,
    stamp: ["20270101T000000Z", "20270102T000000Z"],
  });
  const whole = joined(past, recent);
  assert.deepEqual(whole.value, [1, 2, 3, 4]);
  assert.deepEqual(
    whole.tvm.map((at) => whole.tvms[at]),
    ["a", "b", "b", "c"],
  );
  assert.deepEqual(whole.code, [0, 1, 2, null]);
  assert.equal(whole.noise, 0.01);
});

test("a file of another version is refused in words", () => {
  assert.throws(
    () => checkVersion({ schema_version: 2 }, "index.json"),
    (error) => error instanceof SiteError && /version 2/.test(error.message),
  );
  assert.throws(() => checkVersion(null, "x"), SiteError);
});

function indexOf(count) {
  const column = (value) => Array(count).fill(value);
  return {
    schema_version: 1,
    night: "20261121T031500Z",
    stamps: ["20261121T031500Z"],
    nights: {},
    years: [2026],
    experiments: [{ name: "e", title: "The title", page: "experiments/e-1.html", active: true }],
    series: {
      id: column(0).map((_v, at) => `id${at}`),
      experiment: column(0),
      name: column(0).map((_v, at) => `e net${at}`),
      metric: column("run_time"),
      unit: column("ms"),
      direction: column("lower"),
      labels: column({ engine: "tvm" }),
      last: column(1),
      low: column(null),
      high: column(null),
      last_stamp: column("20261121T031500Z"),
      change: column(null),
      verdict: column("quiet"),
      grade: column("A"),
      visible: column(null),
      points: column(3),
      past: column(0),
      incident: column(null),
    },
  };
}

test("the catalogue is found by what series are called, experiments, nights and pages", () => {
  const items = findable(catalogue(indexOf(100)));
  const kinds = (text) => search(items, text).found.map((item) => item.kind);
  assert.equal(search(items, "net7").count, 11);
  assert.equal(search(items, "net").found.length, 30);
  assert.deepEqual(kinds("the title"), ["experiment"]);
  assert.deepEqual(kinds("2026-11-21"), ["night"]);
  assert.deepEqual(kinds("compare"), ["page"]);
  assert.equal(search(items, "nothing at all").count, 0);
});

test("a view shows more than two units relative to the baseline, and no logarithm of nothing", () => {
  const one = (unit, values) => ({ entry: entryOf(unit), shard: shardOf(values, { unit }) });
  const three = makeView({}, [one("ms", [1, 2]), one("bytes", [3, 4]), one("", [5, 6])]);
  assert.equal(three.relative, true);
  assert.deepEqual(
    three.lines.map((line) => line.scale),
    ["ratio", "ratio", "ratio"],
  );
  const log = makeView({ scale: "log", hide: "tvm" }, [one("ms", [0, 2])]);
  assert.deepEqual(log.lines[0].values, [undefined, 2]);
  assert.equal(log.kinds.has("tvm"), false);
  assert.equal(log.kinds.has("incident"), true);
});

test("past years are read when the view begins before them", () => {
  const boundary = recentBoundary("20261121T031500Z");
  assert.equal(boundary, Date.UTC(2025, 0, 1) / 1e3);
  assert.equal(needsPast({}, boundary), false);
  assert.equal(needsPast({ from: "2024-12-31" }, boundary), true);
  assert.equal(needsPast({ from: "all" }, boundary), true);
});

test("facts are told as paths with their units", () => {
  assert.deepEqual(
    [...flat({ a: { memory_bytes: 5, list: [1, 2] }, b: null, compile_time: 3, none: {} })],
    [
      ["a.memory_bytes", "5 bytes"],
      ["a.list", "1, 2"],
      ["b", "not known"],
      ["compile_time", "3 ms"],
      ["none", "none"],
    ],
  );
});

test("around one night some days are shown, around many a little room", () => {
  const day = 86400;
  assert.deepEqual(periodOf({}, wholeRange([10 * day])), [7 * day, 13 * day]);
  assert.deepEqual(periodOf({}, wholeRange([0, 200 * day])), [-2 * day, 202 * day]);
});

test("an interval of a time or a size that reaches 0 has one end", () => {
  assert.equal(format.interval(-0.5, 2, "ms"), "at most 2.000 ms");
  assert.equal(format.interval(0, 2048, "bytes"), "at most 2.048 kB");
  assert.equal(format.interval(-0.5, 2, ""), "-0.5000 to 2.000");
});

test("a card stands where it hides neither its point nor the step of its line", () => {
  const room = { left: 80, top: 20, width: 800, height: 300 };
  const size = { width: 260, height: 200 };
  const step = Array.from({ length: 100 }, (_one, at) => ({ x: 84 + at * 8, y: at < 50 ? 300 : 40 }));
  for (const at of [0, 10, 48, 49, 50, 51, 90, 99]) {
    const found = placeCard(size, room, step[at], step);
    assert.equal(found.hidden, 0, `at ${at}`);
    const inside = step.filter(
      ({ x, y }) => x > found.left && x < found.left + 260 && y > found.top && y < found.top + 200,
    );
    assert.deepEqual(inside, [], `at ${at}`);
    assert.ok(found.left >= 80 && found.left + 260 <= 880 && found.top >= 20 && found.top + 200 <= 320);
  }
});

test("a card says what it hides of a line that is everywhere, and where it has no room there is no place", () => {
  const room = { left: 0, top: 0, width: 600, height: 220 };
  const wild = Array.from({ length: 60 }, (_one, at) => ({ x: at * 10, y: at % 2 ? 10 : 210 }));
  assert.ok(placeCard({ width: 260, height: 200 }, room, wild[30], wild).hidden > 0);
  assert.equal(placeCard({ width: 260, height: 200 }, { ...room, width: 200 }, wild[3], wild), null);
});

function viewOf(state, ...columns) {
  const series = columns.map((values, at) => ({ entry: entryOf(`s${at}`), shard: shardOf(values, { id: `s${at}` }) }));
  return makeView(state, series);
}

function fitted(view) {
  return fit(view, view.lines[0].scale, 0, view.xs.length - 1);
}

const calm = Array.from({ length: 30 }, (_one, at) => 100 + (at % 3) - 1);

test("a scale leaves out a night far out, but neither what is near nor the last night", () => {
  const spiked = (at, value) => fitted(viewOf({}, calm.with(at, value)));
  assert.deepEqual(spiked(10, 400), [99, 101]);
  assert.deepEqual(spiked(29, 400), [99, 400]);
  assert.deepEqual(spiked(10, 102), [99, 102]);
  assert.deepEqual(fitted(viewOf({ y: "all" }, calm.with(10, 400))), [99, 400]);
  assert.deepEqual(fitted(viewOf({}, [5, 5, 5, 9, 5, 5])), [5, 9], "exact numbers have no outliers");
  assert.equal(fitted(viewOf({}, [null])), null);
});

test("a drift is no outlier, nor is a level of some nights", () => {
  const drift = calm.map((value, at) => value + at * 5);
  assert.deepEqual(fitted(viewOf({}, drift)), [Math.min(...drift), Math.max(...drift)]);
  const level = calm.map((value, at) => (at > 9 && at < 16 ? 4 * value : value));
  assert.equal(fitted(viewOf({}, level))[1] > 390, true);
});

test("one restless series does not set the scale of the others", () => {
  const restless = calm.map((_value, at) => 100 * (1 + 0.6 * Math.sin(at * 2.1)));
  const [low, high] = fitted(viewOf({}, calm, calm, restless));
  assert.ok(low > 85 && high < 115, `${low} to ${high}`);
});

test("fitted to steps a scale holds the levels between them, whatever is beside", () => {
  const values = calm.map((value, at) => (at < 20 ? value : value * 1.1)).with(5, 900).with(25, 1);
  const view = viewOf({ y: "steps" }, values);
  view.lines[0].shard.steps = [{ stamp: view.lines[0].shard.stamp[20], size: 0.1, kind: "compiler" }];
  assert.deepEqual(fitted(view).map(Math.round), [100, 110]);
});

test("a group's mean is the geometric one of ratios, of those that have a value", () => {
  const column = (first, last) => [...Array(10).fill(first), last];
  const entries = ["a", "a", "b"].map((engine, at) => entryOf(`s${at}`, { labels: { engine, same: "x" } }));
  assert.deepEqual(keysOf(entries), ["engine"]);
  const shards = [column(10, 20), column(4, 2), column(5, null)].map((values) => shardOf(values));
  const view = withMeans(makeView({ group: "engine" }, entries.map((entry, at) => ({ entry, shard: shards[at] }))));
  assert.deepEqual(
    view.lines.map((line) => [line.entry.name, line.color, line.faint]),
    [
      ["engine a: mean of 2", 0, false],
      ["e s0", 0, true],
      ["e s1", 0, true],
      ["engine b: mean of 1", 1, false],
      ["e s2", 1, true],
    ],
  );
  assert.deepEqual(view.lines[0].values, Array(11).fill(1), "twice as slow and twice as fast");
  assert.deepEqual(view.lines[3].values.at(-1), undefined);
  assert.equal(view.lines[3].shard.stamp.length, 10);
  const all = withMeans(makeView({ group: "all" }, entries.map((entry, at) => ({ entry, shard: shards[at] }))));
  assert.equal(all.lines[0].entry.name, "all: mean of 3");
  assert.deepEqual(all.lines[0].mean.counts.slice(-2), [3, 2]);
});

test("a view as CSV has a line for each point in view, LF alone, and no formula", () => {
  const shard = shardOf([1.5, null, 3], { low: [1.4, null, null], high: [1.6, null, null] });
  const entry = entryOf("a", { name: '=1+1, "x"', experiment: "nets" });
  const view = makeView({}, [{ entry, shard }]);
  assert.equal(
    csvOf(rowsOf(view)),
    [
      "night,commit,experiment,series,unit,value,low,high,ratio_to_baseline",
      `2026-01-01T03:00:00Z,v0,nets,"'=1+1, ""x""",ms,1.5,1.4,1.6,0.6666667`,
      `2026-01-03T03:00:00Z,v0,nets,"'=1+1, ""x""",ms,3,,,1.333333`,
      "",
    ].join("\n"),
  );
  assert.equal(rowsOf(makeView({ to: "2026-01-02" }, [{ entry, shard }])).length, 1);
});

test("a picture has a line where nights are, broken where a week is missing, and a triangle for what is outside", () => {
  const colors = { series: (place) => `c${place}`, dash: () => [], named: (name) => name };
  const shard = shardOf(calm.with(10, 400));
  shard.stamp = shard.stamp.map((stamp, at) => (at < 15 ? stamp : stamp.replace(/^2026/, "2027")));
  const { plot, clipped } = pictureOf(makeView({}, [{ entry: entryOf("a"), shard }]), { width: 600, height: 300 }, colors);
  const lines = clipped.filter((shape) => shape.kind === "line");
  assert.deepEqual(lines.map((line) => line.points.length), [15, 15]);
  const outside = clipped.filter((shape) => shape.kind === "area" && shape.points.length === 3);
  assert.equal(outside.length, 1);
  assert.equal(outside[0].points[0][1], plot.y);
});
