
"use strict";

/*
 * Draws a report from the JSON in the page. One function a section, at the end all are called.
 *
 * Texts in the data are the user's. They become text nodes, never markup: el() below is the only
 * way an element is made, and it takes tags and attribute names from this file alone.
 */

const data = JSON.parse(document.getElementById("data").textContent);
const FIRST_SHOWN = 24; // cards, before "show all"
const CARD_WORDS = 8; // words with a bar on a card; the rest follow in a line
const MANY_CLASSES = 8; // from here on one class can be picked
const TOO_MANY_CLASSES = 40; // from here on one class is picked at the start
const calm = matchMedia("(prefers-reduced-motion: reduce)");

/* ---- Elements ---- */

/** Make an element. Attributes that start with "on" are listeners; null and false are left out. */
function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill(node, attributes, children) {
  set(node, attributes);
  node.append(...children.flat(Infinity).filter((child) => child != null && child !== false));
  return node;
}

function set(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value != null && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
}

/** Return a place in a section that page.html names with data-slot. */
const slot = (section, name) => section.querySelector(`[data-slot="${name}"]`);

/** Return an element with a style set; the page's policy allows this, but no style attributes. */
function sized(node, property, share) {
  node.style[property] = `${100 * Math.min(Math.max(share || 0, 0), 1)}%`;
  return node;
}

/** Draw whenever the width of the box changes. Return a function that draws again. */
function fitted(box, draw) {
  let drawn = 0;
  const redraw = (width = drawn) => width && box.replaceChildren(draw((drawn = width)));
  box.classList.add("chart");
  new ResizeObserver(() => box.clientWidth !== drawn && redraw(box.clientWidth)).observe(box);
  return redraw;
}

/** Set the choices of a select box; its value is the index of the choice. */
const setOptions = (select, names) => select.replaceChildren(...names.map((name, i) => el("option", { value: i }, name)));

/** Draw an image: the ink is the text color (dark mode inverts both, see page.css). */
function paint(canvas, image) {
  const bytes = atob(image);
  const pixels = new ImageData(canvas.width, canvas.height);
  for (let i = 0; i < bytes.length && 4 * i < pixels.data.length; i++) {
    pixels.data.set([0x1c, 0x1f, 0x23, bytes.charCodeAt(i)], 4 * i);
  }
  canvas.getContext("2d").putImageData(pixels, 0, 0);
}

function picture(image, label) {
  if (!image || !data.image_shape) return null;
  const [height, width] = data.image_shape;
  const canvas = el("canvas", { width, height, role: "img", "aria-label": label });
  paint(canvas, image);
  return canvas;
}

/* ---- Numbers ---- */

const MISSING = "\u2013";
const minus = (text) => text.replace("-", "\u2212");
const fixed = (x, digits = 3) => (x == null ? MISSING : minus(x.toFixed(digits)));
const short = (x) => (x == null ? MISSING : minus(String(Number(x.toPrecision(3)))));
const signed = (x, digits = 3) => (x > 0 ? "+" : "") + fixed(x, digits);
const digitsFor = (most) => Math.min(Math.max(2 - Math.floor(Math.log10(most)), 0), 8);
const percent = (x) => (x == null ? MISSING : `${(100 * x).toFixed(1)}%`);
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 4 });
const long = new Intl.NumberFormat("en", { maximumSignificantDigits: 6 });
const side = (weight) => (weight < 0 ? "against" : "for");
const largest = (numbers) => numbers.reduce((a, b) => Math.max(a, Math.abs(b)), 0) || 1;
const partName = (k) => `Part ${k + 1}`;
const className = (c) => data.classes?.[c]?.name ?? `class ${c + 1}`;

/** Return a function from a domain to pixels. */
function scale([low, high], [from, to], warp = (x) => x) {
  const start = warp(low);
  const width = warp(high) - start || 1;
  return (x) => from + ((warp(x) - start) / width) * (to - from);
}

/** Return about `count` round numbers that lie in [low, high]. */
function ticks(low, high, count) {
  const rough = (high - low) / count || 1;
  if (!(rough > 1e-12 * Math.abs(high))) return [low];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough * 0.999);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) found.push(i * step + 0);
  return found;
}

function logTicks(low, high) {
  const powers = [];
  for (let p = Math.floor(Math.log10(low)); p <= Math.log10(high); p++) powers.push(10 ** p);
  const inside = (steps) => powers.flatMap((p) => steps.map((s) => s * p)).filter((t) => t >= low && t <= high);
  return [[1, 2, 5], [1, 3], [1]].map(inside).find((found) => found.length <= 7) ?? inside([1]);
}

/** Return a line across the chart for each tick, with its number at the left. */
function gridlines(marks, y, left, right, format) {
  return marks.flatMap((t) => [svg("line", { class: "gridline", x1: left, x2: right, y1: y(t), y2: y(t) }),
    svg("text", { x: left - 7, y: y(t) + 4, "text-anchor": "end" }, format(t))]);
}

/** Return [low, high] of the scores with their errors, and a little air. */
function extent(rows) {
  const known = rows.filter((row) => row.score != null);
  if (!known.length) return [0, 1];
  const low = Math.min(...known.map((row) => row.score - (row.error ?? 0)));
  const high = Math.max(...known.map((row) => row.score + (row.error ?? 0)));
  const air = 0.06 * (high - low) || 0.05;
  return [low - air, high + air];
}

/** Scores lie between 0 and 1; the air around them does not. */
const isScore = (t) => t >= 0 && t <= 1 + 1e-9;

/* ---- Tables ---- */

/**
 * Make a table. A column has a title and a cell (row -> content), and may have a value to sort by
 * (row -> number or text), a class, and `down: true` when the largest values should come first.
 */
function table({ caption, columns, rows, stack = false, rowClass = () => null }) {
  const body = el("tbody", { role: "rowgroup" });
  const lines = rows.map((row) => ({ row, line: tableRow(columns, row, rowClass(row)) }));
  body.append(...lines.map(({ line }) => line));
  const heads = columns.map((column) => tableHead(column));
  heads.forEach((head, c) => {
    head.querySelector("button")?.addEventListener("click", () => sortBy(columns[c], head));
  });

  function sortBy(column, head) {
    const before = head.getAttribute("aria-sort");
    const down = before ? before === "ascending" : Boolean(column.down);
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const sorted = [...lines].sort((a, b) => compare(column.value(a.row), column.value(b.row), down));
    body.append(...sorted.map(({ line }) => line));
  }

  return el("table", { class: stack && "stack", role: "table" },
    el("caption", { class: "spoken" }, caption),
    el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, heads)), body);
}

function tableHead(column) {
  const type = [column.class, column.value && "sorts"].filter(Boolean).join(" ");
  return el("th", { scope: "col", role: "columnheader", class: type || null },
    column.value ? el("button", { type: "button", class: "link" }, column.title) : column.title);
}

function tableRow(columns, row, type) {
  return el("tr", { class: type, role: "row" }, columns.map((column, c) => {
    const attributes = { class: column.class, "data-title": column.title || null };
    return c === 0
      ? el("th", { class: column.class, scope: "row", role: "rowheader" }, column.cell(row))
      : el("td", { ...attributes, role: "cell" }, column.cell(row));
  }));
}

/** Compare two values; those that are missing come last either way. */
function compare(a, b, down) {
  if (a == null || b == null) return (a == null) - (b == null);
  const order = typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b;
  return down ? -order : order;
}

/* ---- 1. Result ---- */

function drawHeadline(section, { metric, rows, sentence, warning }) {
  slot(section, "sentence").append(sentence ?? "");
  if (warning) {
    slot(section, "warning").append(el("p", { class: "warning" }, el("strong", {}, "Caution. "), warning));
  }
  if (!rows?.length) return;
  const domain = extent(rows);
  const marks = ticks(...domain, 3).filter(isScore);
  const place = scale(domain, [0, 100]);
  const columns = [
    { title: "", cell: (row) => row.name },
    { title: "", cell: (row) => interval(row, place, marks) },
    { title: metric ?? "score", class: "number", cell: scoreText },
  ];
  const made = table({ caption: "Scores", columns, rows, rowClass: (row) => row.ours && "ours" });
  const labels = marks.map((t) => svg("text", { x: `${place(t)}%`, y: 12, "text-anchor": "middle" }, short(t)));
  const axis = svg("svg", { height: 16, "aria-hidden": "true" }, labels);
  made.append(el("tfoot", {}, el("tr", {}, el("td"), el("td", {}, axis), el("td"))));
  const hasErrors = rows.some((row) => row.error != null);
  const note = hasErrors && el("p", { class: "note" }, "Dots are scores; the lines reach one standard error either way.");
  fill(slot(section, "chart"), {}, [made, note]);
}

function scoreText(row) {
  return fixed(row.score) + (row.score == null || row.error == null ? "" : ` \u00b1 ${fixed(row.error)}`);
}

function interval(row, place, marks) {
  const x = (value) => `${place(value)}%`;
  const lines = marks.map((t) => svg("line", { class: "gridline", x1: x(t), x2: x(t), y1: -8, y2: 42 }));
  const picture = svg("svg", { height: 34, "aria-hidden": "true" }, lines);
  if (row.score == null) return picture;
  const error = row.error ?? 0;
  picture.append(
    svg("line", { class: "whisker", x1: x(row.score - error), x2: x(row.score + error), y1: 17, y2: 17 }),
    svg("circle", { class: "dot", cx: x(row.score), cy: 17, r: row.ours ? 6 : 5 }),
  );
  return picture;
}

/* ---- 2. Parts ---- */

const NOUN = { text: "word", image: "word", matrix: "feature" }[data.kind] ?? "feature";

function drawParts(section, parts) {
  const cards = parts.map(partCard);
  const list = slot(section, "cards");
  list.classList.toggle("pictures", parts.every((part) => part.image && !part.top?.length));
  list.append(...cards);
  const search = slot(section, "search");
  const pick = slot(section, "class");
  const more = slot(section, "more");
  search.querySelector("span").textContent = `Find a ${NOUN}`;
  search.hidden = !parts.some((part) => part.top?.length);
  const used = [...new Set(parts.flatMap((part) => (part.classes ?? []).map(([c]) => c)))].sort((a, b) => a - b);
  pick.hidden = slot(section, "votes").hidden = used.length === 0;
  slot(section, "stability").hidden = !parts.some((part) => part.stability != null);
  slot(section, "own").hidden = !parts.some((part) => part.own?.length);
  const [box, select] = [search.querySelector("input"), pick.querySelector("select")];
  setOptions(select, ["any", ...used.map(className)]);
  let all = false;

  function update() {
    const word = box.value.trim().toLowerCase();
    const chosen = used[select.value - 1];
    const weight = (k) => parts[k].classes?.find(([c]) => c === chosen)?.[1];
    const order = [...parts.keys()];
    if (chosen != null) order.sort((a, b) => (weight(b) ?? -Infinity) - (weight(a) ?? -Infinity));
    const found = order.filter((k) => hasWord(parts[k], word) && (chosen == null || weight(k) != null));
    const limit = all || word || chosen != null ? Infinity : FIRST_SHOWN;
    const shown = new Set(found.slice(0, limit));
    order.forEach((k) => {
      cards[k].hidden = !shown.has(k);
      cards[k].querySelectorAll("[data-word]").forEach((node) => {
        node.classList.toggle("hit", Boolean(word) && node.dataset.word.includes(word));
      });
    });
    list.append(...order.map((k) => cards[k]));
    slot(section, "count").value = `${shown.size} of ${parts.length} parts`;
    more.hidden = shown.size >= found.length;
    more.textContent = `Show all ${parts.length} parts`;
  }

  box.addEventListener("input", update);
  select.addEventListener("change", update);
  more.addEventListener("click", () => { all = true; update(); });
  section.addEventListener("reveal", () => { all = true; box.value = ""; select.value = "0"; update(); });
  update();
}

const wordMark = (word) => el("span", { "data-word": word.toLowerCase() }, word);
const hasWord = (part, word) => !word || [...(part.top ?? []), ...(part.own ?? [])].some(([other]) => other.toLowerCase().includes(word));

function partCard(part, k) {
  const top = part.top ?? [];
  const most = largest(top.map(([, weight]) => weight));
  const head = el("div", { class: "card-head" }, el("h3", {}, partName(k)),
    part.fixed && el("span", { class: "soft" }, "fixed"),
    part.carried && el("span", { class: "soft" }, "from the prior"),
    part.stability != null && stabilityMark(part.stability),
    part.share != null && el("span", { class: "soft", title: "share of the data" }, percent(part.share)));
  const bars = top.slice(0, CARD_WORDS).map(([word, weight]) => el("li", { title: `${word}: ${short(weight)}` },
    el("span", { class: "cut" }, wordMark(word)),
    sized(el("div", { class: "bar" }), "width", weight / most)));
  const rest = top.slice(CARD_WORDS).flatMap(([word], i) => [i ? ", " : "", wordMark(word)]);
  return el("li", { class: "card", id: `part-${k}`, tabindex: -1 }, head, picture(part.image, partName(k)),
    bars.length > 0 && el("ol", { class: "bars" }, bars),
    rest.length > 0 && el("p", { class: "also" }, rest),
    part.own?.length > 0 && el("p", { class: "also" }, "Its own: ", ownWords(part.own)), partClasses(part.classes ?? []));
}

/** How well other starts found the part again; a part below 0.9 may be a matter of chance. */
function stabilityMark(value) {
  const shown = value.toFixed(2), shaky = shown < 0.9;
  const title = `the mean cosine of this part and its match in runs from other starts${shaky ? ": another start may not find it" : ""}`;
  return el("span", { class: shaky ? "against" : "soft", title }, `stability ${shown}`);
}

const ownWords = (own) => own.flatMap(([word, factor], i) => [i ? ", " : "", wordMark(word), ` \u00d7${short(factor)}`]);

function partClasses(classes) {
  if (!classes.length) return null;
  const sorted = [...classes].sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
  const chips = sorted.slice(0, 4).map(([c, weight]) => el("span", { class: side(weight), title: signed(weight) },
    el("span", { class: "spoken" }, `speaks ${side(weight)} `), `${weight < 0 ? "\u2212" : "+"} ${className(c)}`));
  const left = sorted.slice(4);
  const names = left.map(([c, weight]) => `${weight < 0 ? "\u2212" : "+"} ${className(c)}`).join("\n");
  const rest = left.length > 0 && el("span", { class: "soft", title: names }, `and ${left.length} more`);
  return el("div", { class: "votes-for" }, chips, rest);
}

/** Scroll to the card of a part, wherever it is hidden, and light it up for a moment. */
function showPart(k) {
  const card = document.getElementById(`part-${k}`);
  if (!card) return;
  if (card.hidden) document.getElementById("parts").dispatchEvent(new Event("reveal"));
  card.scrollIntoView({ behavior: calm.matches ? "auto" : "smooth", block: "center" });
  card.focus({ preventScroll: true });
  document.querySelectorAll(".card.lit").forEach((other) => other.classList.remove("lit"));
  card.classList.add("lit");
  setTimeout(() => card.classList.remove("lit"), 4000);
}

/* ---- 3. Classes ---- */

function drawClasses(section, classes) {
  const most = largest(classes.flatMap((group) => (group.parts ?? []).map(([, weight]) => weight)));
  const columns = [
    { title: "Class", value: (group) => group.name, cell: (group) => group.name },
    { title: "Labeled", class: "number", value: (group) => group.n_labeled, down: true,
      cell: (group) => (group.n_labeled == null ? MISSING : String(group.n_labeled)) },
    ...(classes.some((group) => group.seeds?.length) ?
      [{ title: "Seeds", cell: (group) => (group.seeds ?? []).join(", ") }] : []),
    { title: "Parts", class: "wide",
      cell: (group) => el("div", { class: "votes" }, (group.parts ?? []).map((vote) => voteCell(vote, most))) },
  ];
  const made = table({ caption: "The parts that weigh most in each class", columns, rows: classes, stack: true });
  made.classList.toggle("pictured", Boolean(data.parts?.[0]?.image));
  slot(section, "table").append(made);
  if (classes.length < MANY_CLASSES) return;
  const lines = [...made.tBodies[0].rows];
  const select = section.querySelector("select");
  slot(section, "controls").hidden = false;
  setOptions(select, [`all ${classes.length} classes`, ...classes.map((group) => group.name)]);
  const update = () => lines.forEach((line, c) => { line.hidden = select.value > 0 && select.value - 1 !== c; });
  select.addEventListener("change", update);
  if (classes.length > TOO_MANY_CLASSES) select.value = "1";
  update();
}

function voteCell([k, weight], most) {
  const part = data.parts?.[k];
  const bar = sized(el("div", { class: weight < 0 ? "minus" : "plus" }), "width", Math.abs(weight) / most / 2);
  const words = part?.image ? null : (part?.top ?? []).slice(0, 3).map(([word]) => word).join(", ");
  return el("div", { class: "vote" }, picture(part?.image, partName(k)),
    part ? el("button", { type: "button", class: "link", onclick: () => showPart(k) }, partName(k)) : partName(k),
    el("span", { class: side(weight) }, signed(weight, digitsFor(most))),
    el("div", { class: "axis" }, bar), words && el("span", { class: "cut soft", title: words }, words));
}

/* ---- 4. Margins ---- */

function drawMargins(section, margins) {
  const label = slot(section, "select");
  const select = label.querySelector("select");
  label.hidden = margins.length < 2;
  setOptions(select, margins.map((margin) => margin.name));
  const strip = margins.length > 2 && margins.some((margin) => margin.kept?.some((x) => x != null));
  const redraw = strip && fitted(slot(section, "strip"), (width) => keptStrip(margins, Number(select.value), width));
  function update() {
    const margin = margins[select.value];
    slot(section, "span").textContent = margin.span == null ? ""
      : `${fixed(100 * margin.span, 0)} % of the hyperplane w+ \u2212 w\u2212 lies in the span of the parts.`;
    slot(section, "sides").replaceChildren(
      marginSide("plus", `w+, ${margin.sides?.[0] ?? "for"}`, margin.plus, margin.plus_rebuilt, margin.kept?.[0]),
      marginSide("minus", `w\u2212, ${margin.sides?.[1] ?? "against"}`, margin.minus, margin.minus_rebuilt, margin.kept?.[1]),
    );
    if (strip) redraw();
  }
  select.addEventListener("change", update);
  update();
}

/** Draw how much of w+ and w- is kept, a dot a classifier; one of them is the one shown now. */
function keptStrip(margins, now, width) {
  const kept = margins.flatMap((margin) => margin.kept ?? []).filter((x) => x != null);
  const domain = [Math.min(...kept) - 0.01, 1];
  const x = scale(domain, [40, width - 14]);
  const root = svg("svg", { viewBox: `0 0 ${width} 86`, role: "img",
    "aria-label": `What is kept of the margin, from ${fixed(Math.min(...kept), 2)} to ${fixed(Math.max(...kept), 2)}` });
  for (const t of ticks(...domain, width / 90)) {
    root.append(svg("line", { class: "gridline", x1: x(t), x2: x(t), y1: 4, y2: 50 }),
      svg("text", { x: x(t), y: 66, "text-anchor": "middle" }, short(t)));
  }
  root.append(svg("text", { x: width - 14, y: 82, "text-anchor": "end" }, "kept of the margin, a dot a classifier"));
  ["plus", "minus"].forEach((name, row) => {
    const y = 15 + 24 * row;
    const dots = margins.map((margin, i) => margin.kept?.[row] != null
      && svg("circle", { class: "mark", cx: x(margin.kept[row]), cy: y, r: i === now ? 7 : 4, opacity: i === now ? 1 : 0.45 },
        svg("title", {}, `${margin.name}: ${fixed(margin.kept[row])}`)));
    root.append(svg("text", { x: 0, y: y + 4 }, row ? "w\u2212" : "w+"), svg("g", { class: name }, ...dots));
  });
  return root;
}

function marginSide(type, title, actual, rebuilt, kept) {
  const images = [actual?.image, rebuilt?.image].every(Boolean) && el("div", { class: "likeness" },
    el("figure", {}, el("figcaption", {}, "actual"), picture(actual.image, `${title}, actual`)),
    el("figure", {}, el("figcaption", {}, "rebuilt"), picture(rebuilt.image, `${title}, rebuilt by the parts`)));
  return el("div", { class: type },
    el("h3", {}, el("span", {}, title), kept != null && el("span", {}, `${fixed(kept, 2)} kept`)),
    images, actual?.top?.length > 0 && pairedBars(title, actual.top, rebuilt?.top ?? []));
}

function pairedBars(title, actual, rebuilt) {
  const given = new Map(actual);
  const made = new Map(rebuilt);
  const words = [...new Set([...given.keys(), ...made.keys()])];
  const most = largest([...given.values(), ...made.values()]);
  const number = (map, word) => (map.has(word) ? fixed(map.get(word), digitsFor(most)) : "");
  const bar = (map, word) => sized(el("div", { hidden: !map.has(word) }), "width", (map.get(word) ?? 0) / most);
  const columns = [
    { title: "", class: "cut", cell: (word) => el("span", { title: word }, word) },
    { title: "", class: "pair", cell: (word) => [bar(given, word), bar(made, word)] },
    { title: "actual", class: "number", cell: (word) => number(given, word) },
    { title: "rebuilt", class: "number", cell: (word) => number(made, word) },
  ];
  const found = table({ caption: title, columns, rows: words });
  found.prepend(el("colgroup", {}, columns.map(() => el("col"))));
  const heads = found.tHead.rows[0].cells;
  heads[2].prepend(el("span", { class: "key" }), " ");
  heads[3].prepend(el("span", { class: "key rebuilt" }), " ");
  return found;
}

/* ---- 5. Loss ---- */

function drawLoss(section, { iteration, loss, stop }) {
  const points = loss.map((y, i) => [iteration?.[i] ?? i, y]).filter(([, y]) => y != null);
  slot(section, "stop").append(stop ?? "");
  if (!points.length) return;
  const readout = slot(section, "readout");
  const say = ([x, y]) => `iteration ${long.format(x)}: loss ${long.format(y)}`;
  let now = points.length - 1;
  readout.value = say(points[now]);

  fitted(slot(section, "chart"), (width) => {
    const { root, x, y, bottom } = lossAxes(points, width);
    const line = svg("line", { class: "cursor", y1: 18, y2: bottom });
    const dot = svg("circle", { r: 4.5, fill: "var(--for)" });
    root.append(line, svg("path", { class: "curve", d: pathThrough(points.map(([a, b]) => [x(a), y(b)])) }), dot);
    function move(to) {
      now = Math.min(Math.max(to, 0), points.length - 1);
      const [a, b] = points[now];
      readout.value = say(points[now]);
      set(line, { x1: x(a), x2: x(a) });
      set(dot, { cx: x(a), cy: y(b) });
      set(root, { "aria-valuenow": now, "aria-valuetext": readout.value });
    }
    root.addEventListener("pointermove", (event) => {
      const at = event.clientX - root.getBoundingClientRect().left;
      const distance = points.map(([a]) => Math.abs(x(a) - at));
      move(distance.indexOf(Math.min(...distance)));
    });
    root.addEventListener("keydown", (event) => {
      const to = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: points.length - 1 }[event.key];
      if (to == null) return;
      event.preventDefault();
      move(to);
    });
    move(now);
    return root;
  });
}

function lossAxes(points, width) {
  const [height, left, right, bottom] = [230, 52, width - 10, 192];
  const losses = points.map(([, b]) => b);
  const [low, high] = [Math.min(...losses), Math.max(...losses)];
  const steep = low > 0 && high / low > 8;
  const air = steep ? 0 : 0.04 * (high - low || Math.abs(high) || 1);
  const x = scale([points[0][0], points.at(-1)[0]], [left, right]);
  const y = scale([low - air, high + air], [bottom, 18], steep ? Math.log : undefined);
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, tabindex: 0, role: "slider",
    "aria-label": "Loss curve; the arrow keys move along it", "aria-valuemin": 0, "aria-valuemax": points.length - 1 });
  root.append(...gridlines(steep ? logTicks(low, high) : ticks(low - air, high + air, 5), y, left, right, compact.format));
  for (const t of ticks(points[0][0], points.at(-1)[0], width / 110)) {
    root.append(svg("text", { x: x(t), y: bottom + 18, "text-anchor": "middle" }, long.format(t)));
  }
  root.append(svg("line", { class: "baseline", x1: left, x2: right, y1: bottom, y2: bottom }),
    svg("text", { x: 0, y: 8 }, steep ? "loss (log scale)" : "loss"),
    svg("text", { x: right, y: height - 4, "text-anchor": "end" }, "iteration"));
  return { root, x, y, bottom };
}

const pathThrough = (points) => `M${points.map(([a, b]) => `${a.toFixed(1)},${b.toFixed(1)}`).join("L")}`;

/* ---- 6. Choice ---- */

const TRIAL_COLORS = ["--for", "--against-ink", "--green", "--purple", "--ink", "--soft"];
const TRIAL_TITLES = { n_components: "parts", normalize: "normalized", dropped: "dropped early" };

function drawChoice(section, { metric, chosen, trials, sentence }) {
  slot(section, "sentence").append(sentence ?? "");
  const all = slot(section, "all");
  all.hidden = !trials?.length;
  if (!trials?.length) return;
  const best = bestTrials(trials, chosen ?? {});
  if (best.length > 0) {
    fitted(slot(section, "chart"), (width) => choiceChart(best, chosen ?? {}, metric ?? "score", width));
    slot(section, "note").append("One line a rank; bars reach one standard error either way; hollow: dropped early, on fewer folds."
      + (best.length < trials.length ? " Where several trials share rank and lam, the best is drawn." : ""));
  }
  all.querySelector("summary").append(trials.length === 1 ? "The only trial" : `All ${trials.length} trials`);
  all.append(el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "All trials" },
    table({ caption: "All trials", columns: trialColumns(trials, metric), rows: trials,
      rowClass: (trial) => isChosen(trial, chosen ?? {}) && "chosen-row" })));
}

function trialColumns(trials, metric) {
  const names = ["n_components", "lam", "map_iter", "C", "normalize", "score", "error", "folds", "dropped"];
  const text = (value) => (typeof value === "boolean" ? (value ? "yes" : "no") : short(value));
  return names.filter((name) => trials.some((trial) => trial[name] != null)).map((name) => ({
    title: name === "score" ? metric ?? name : TRIAL_TITLES[name] ?? name,
    class: "number", down: name === "score",
    value: (trial) => (trial[name] == null ? null : Number(trial[name])),
    cell: (trial) => (["score", "error"].includes(name) ? fixed(trial[name]) : text(trial[name])),
  }));
}

/** Whether a trial is the chosen one: nothing that both name differs. */
const isChosen = (trial, chosen) => chosen.lam != null
  && Object.entries(chosen).every(([name, value]) => !(name in trial) || trial[name] === value);

/** Return a trial for each rank and lam: the chosen, else one on all folds, else the best. */
function bestTrials(trials, chosen) {
  const found = new Map();
  const worstFirst = (a, b) => isChosen(a, chosen) - isChosen(b, chosen)
    || Boolean(b.dropped) - Boolean(a.dropped) || a.score - b.score;
  const scored = trials.filter((trial) => trial.score != null && trial.lam != null);
  scored.sort(worstFirst).forEach((trial) => found.set(`${trial.n_components} ${trial.lam}`, trial));
  return [...found.values()].sort((a, b) => a.n_components - b.n_components || a.lam - b.lam);
}

function choiceChart(best, chosen, metric, width) {
  const [height, left, right, bottom] = [290, 42, width - 66, 246];
  const lams = [...new Set(best.map((trial) => trial.lam))].sort((a, b) => a - b);
  const ranks = [...new Set(best.map((trial) => trial.n_components))];
  const x = scale([lams[0], lams.at(-1)], [left + 14, right - 10], lamWarp(lams));
  const domain = extent(best);
  const y = scale(domain, [bottom, 22]);
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img",
    "aria-label": `${metric} against lam, one line a rank; the table below has the numbers` });
  root.append(...gridlines(ticks(...domain, 7).filter(isScore), y, left, right, short));
  let last = -Infinity;
  for (const lam of lams) {
    root.append(svg("line", { class: "baseline", x1: x(lam), x2: x(lam), y1: bottom, y2: bottom + 4 }));
    if (x(lam) - last < 36) continue;
    last = x(lam);
    root.append(svg("text", { x: last, y: bottom + 18, "text-anchor": "middle" }, short(lam)));
  }
  root.append(svg("line", { class: "baseline", x1: left, x2: right, y1: bottom, y2: bottom }),
    svg("text", { x: 0, y: 8 }, metric), svg("text", { x: right, y: height - 6, "text-anchor": "end" }, "lam"));
  const dodge = (i) => (i - (ranks.length - 1) / 2) * Math.min(5, 24 / ranks.length);
  const series = ranks.map((rank, i) => {
    const own = best.filter((trial) => trial.n_components === rank);
    return { rank, i, own, spots: own.map((trial) => [x(trial.lam) + dodge(i), y(trial.score)]) };
  });
  root.append(...series.map((one) => rankLine(one, y)), ...rankNames(series, right + 8));
  series.forEach(({ own, spots }) => own.forEach((trial, j) => {
    if (!isChosen(trial, chosen)) return;
    const up = y(trial.score + (trial.error ?? 0)) - 10;
    root.append(svg("circle", { class: "chosen", cx: spots[j][0], cy: spots[j][1], r: 8.5 }),
      svg("text", { class: "chosen-name", x: spots[j][0], y: Math.min(up, spots[j][1] - 14), "text-anchor": "middle" }, "chosen"));
  }));
  return root;
}

/** Return a warp that is logarithmic, with lam = 0 a step to the left of the smallest other. */
function lamWarp(lams) {
  const positive = lams.filter((lam) => lam > 0).map(Math.log10);
  const step = positive.length > 1 ? (positive.at(-1) - positive[0]) / (positive.length - 1) : 1;
  return (lam) => (lam > 0 ? Math.log10(lam) : (positive[0] ?? 0) - step);
}

function rankLine({ rank, i, own, spots }, y) {
  const group = svg("g", { class: "series", color: `var(${TRIAL_COLORS[i % TRIAL_COLORS.length]})` });
  group.append(svg("path", { d: pathThrough(spots), "stroke-dasharray": i < TRIAL_COLORS.length ? null : "5 3" }));
  own.forEach((trial, j) => {
    const [a, b] = spots[j];
    const error = trial.error ?? 0;
    group.append(svg("line", { x1: a, x2: a, y1: y(trial.score - error), y2: y(trial.score + error) }),
      svg("circle", { class: trial.dropped ? "hollow" : "point", cx: a, cy: b, r: 4, "stroke-width": 1.5 },
        svg("title", {}, `${rank} parts, lam ${short(trial.lam)}: ${scoreText(trial)}`)));
  });
  return group;
}

/** Return the names of the lines at their right ends, moved apart where they would overlap. */
function rankNames(series, left) {
  const names = series.map(({ rank, i, spots }) => ({ rank, i, y: spots.at(-1)[1] })).sort((a, b) => a.y - b.y);
  names.forEach((name, j) => { if (j) name.y = Math.max(name.y, names[j - 1].y + 14); });
  return names.map(({ rank, i, y }) => svg("g", { class: "series", color: `var(${TRIAL_COLORS[i % TRIAL_COLORS.length]})` },
    svg("text", { x: left, y: y + 4 }, `${rank} parts`)));
}

/* ---- Settings ---- */

function drawSettings(section, settings) {
  const columns = [{ title: "Setting", cell: ([name]) => name }, { title: "Value", cell: ([, value]) => value }];
  slot(section, "table").append(table({ caption: "Settings", columns, rows: settings }));
}

/* ---- 7. Examples ---- */

function drawExamples(section, examples) {
  const lists = [["certain", "Most certain"], ["doubtful", "Most doubtful"]].filter(([name]) => examples[name]?.length);
  const panels = lists.map(([name, title]) => el("div", { id: `panel-${name}`, role: "tabpanel", "aria-labelledby": `tab-${name}` },
    el("h3", { class: "spoken" }, title), exampleTable(title, examples[name])));
  slot(section, "words").hidden = !lists.some(([name]) => examples[name].some((row) => row.words?.length));
  const tabs = lists.map(([name, title], i) => el("button", { type: "button", role: "tab", id: `tab-${name}`,
    "aria-controls": `panel-${name}`, onclick: () => pick(i) }, title));
  function pick(i) {
    tabs.forEach((tab, j) => {
      tab.setAttribute("aria-selected", i === j);
      tab.tabIndex = i === j ? 0 : -1;
      panels[j].hidden = i !== j;
    });
  }
  slot(section, "tabs").addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    const to = (tabs.indexOf(document.activeElement) + step + tabs.length) % tabs.length;
    pick(to);
    tabs[to].focus();
  });
  slot(section, "tabs").append(...tabs);
  slot(section, "panels").append(...panels);
  pick(0);
}

function exampleTable(caption, rows) {
  const has = (name) => rows.some((row) => row[name] != null && row[name].length !== 0);
  const names = (labels) => (labels ?? []).join(", ");
  const columns = [
    { title: "Example", value: (row) => row.name, cell: (row) => row.name },
    has("image") && { title: "", cell: (row) => picture(row.image, row.name) },
    has("text") && { title: "Text", class: "text", cell: (row) => row.text && folded(row.text) },
    { title: "Predicted", value: (row) => names(row.labels), cell: (row) => names(row.labels) || MISSING },
    has("known") && { title: "Known", value: (row) => row.known && names(row.known), cell: knownLabels },
    { title: "Score", class: "number", value: (row) => row.score, down: true, cell: (row) => fixed(row.score, 2) },
    has("probability") && { title: "Probability", class: "number", value: (row) => row.probability, down: true,
      cell: probability },
    has("words") && { title: "What decided", class: "wide", cell: (row) => (row.words ?? []).map(decidingWord) },
  ];
  return el("div", { class: "scroll" }, table({ caption, columns: columns.filter(Boolean), rows, stack: true }));
}

function folded(text) {
  const line = text.replace(/\s+/g, " ").trim();
  if (line.length <= 110) return line;
  const start = line.slice(0, 100).replace(/\s\S*$/, "");
  return el("details", {}, el("summary", {},
    el("span", { class: "closed" }, `${start}\u2026 `), el("span", { class: "toggle closed" }, "more"),
    el("span", { class: "toggle opened" }, "less")), el("p", {}, text.trim()));
}

function knownLabels({ known, labels }) {
  if (!known) return el("span", { class: "soft" }, MISSING);
  const same = known.length === (labels ?? []).length && known.every((label) => labels.includes(label));
  return el("span", same ? {} : { class: "differs", title: "differs from the prediction" }, known.join(", ") || "none");
}

function probability({ probability: p }) {
  if (p == null) return MISSING;
  const bar = el("span", { "aria-hidden": "true" });
  bar.style.backgroundSize = `${100 * p}% 100%`;
  return el("div", { class: "probability" }, bar, fixed(p, 2));
}

const decidingWord = ([word, weight]) => el("span", { class: `chip ${side(weight)}`, title: signed(weight) },
  `${weight < 0 ? "\u2212" : "+"} ${word}`);

/* ---- 8. The path along lam ---- */

function drawPath(section, path) {
  const range = section.querySelector("input");
  const play = slot(section, "play");
  const more = slot(section, "more");
  const grid = slot(section, "grid");
  const pictured = Boolean(path[0].parts?.[0]?.image && data.image_shape);
  const start = path.findIndex((step) => step.lam === data.choice?.chosen?.lam);
  range.max = path.length - 1;
  range.value = Math.max(start, 0);
  grid.className = pictured ? "thumbs" : "cards";
  slot(section, "new").hidden = pictured;
  const marks = path.map((step) => el("span", {}, el("span", {}, short(step.lam)), step.score != null && el("span", {}, fixed(step.score, 2))));
  slot(section, "ticks").append(...marks);
  const limit = pictured ? Infinity : FIRST_SHOWN;
  let all = path[0].parts.length <= limit;
  let timer = null;

  function update() {
    const now = Number(range.value);
    const { lam, score, parts } = path[now];
    const text = `lam = ${short(lam)}` + (score == null ? "" : `, ${data.headline?.metric ?? "score"} ${fixed(score)}`);
    range.setAttribute("aria-valuetext", text);
    slot(section, "readout").value = text;
    marks.forEach((mark, i) => mark.classList.toggle("now", i === now));
    const shown = all ? parts : parts.slice(0, limit);
    grid.replaceChildren(...shown.map((part, k) => pathItem(part, k, path[now - 1]?.parts[k], lam)));
    more.hidden = all;
    more.textContent = `Show all ${parts.length} parts`;
  }
  function stop() {
    clearInterval(timer);
    timer = null;
    play.textContent = "Play";
  }
  function step() {
    if (Number(range.value) === path.length - 1) return stop();
    range.value = Number(range.value) + 1;
    return update();
  }
  play.addEventListener("click", () => {
    if (timer) return stop();
    if (Number(range.value) === path.length - 1) range.value = -1;
    play.textContent = "Pause";
    timer = setInterval(step, 1100);
    return step();
  });
  range.addEventListener("input", () => { stop(); update(); });
  more.addEventListener("click", () => { all = true; update(); });
  update();
}

function pathItem(part, k, before, lam) {
  if (part.image) {
    return el("li", {}, picture(part.image, `${partName(k)} at lam = ${short(lam)}`), el("span", { class: "soft" }, String(k + 1)));
  }
  const old = before && new Set((before.top ?? []).map(([word]) => word));
  const words = (part.top ?? []).slice(0, CARD_WORDS).map(([word]) => {
    const fresh = old && !old.has(word);
    return el("li", { class: "cut", title: word }, fresh ? el("strong", { class: "new" }, word) : word);
  });
  return el("li", { class: "card" }, el("div", { class: "card-head" }, el("h3", {}, partName(k)),
    part.share != null && el("span", { class: "soft" }, percent(part.share))), el("ol", {}, words));
}

/* ---- The page ---- */

function setUpTheme() {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const update = () => { button.textContent = isDark() ? "Light colors" : "Dark colors"; };
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    update();
  });
  system.addEventListener("change", update);
  button.hidden = false;
  update();
}

function main() {
  const drawings = { headline: drawHeadline, parts: drawParts, classes: drawClasses, margins: drawMargins,
    loss: drawLoss, choice: drawChoice, settings: drawSettings, examples: drawExamples, path: drawPath };
  setUpTheme();
  for (const [name, draw] of Object.entries(drawings)) {
    const section = document.getElementById(name);
    if (section) draw(section, data[name]);
  }
}

main();
