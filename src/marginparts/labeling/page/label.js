// The page: shows one sample, sends one answer, and shows the next. All texts go in as texts.
"use strict";
(() => {
  const token = new URLSearchParams(location.search).get("token") || "";
  const $ = (id) => document.getElementById(id);
  const unique = () => Array.from(crypto.getRandomValues(new Uint8Array(8)), (b) => b.toString(16).padStart(2, "0")).join("");
  let tab = sessionStorage.getItem("tab");
  if (!tab) sessionStorage.setItem("tab", (tab = unique()));

  let sample = null; // what is shown
  let status = null;
  let chosen = []; // labels that are pressed, where a sample can have several
  let focused = null; // the label whose words are marked
  let busy = false;
  let acts = 0; // what was asked for before the last of them is out of date
  let seen = -1; // the version of what is known beside

  // ---- small things ----

  function make(tag, attributes = {}, ...children) {
    const svg = ["svg", "path", "line", "text"].includes(tag);
    const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "onclick") node.addEventListener("click", value);
      else if (value !== null && value !== undefined) node.setAttribute(name, value);
    }
    node.append(...children);
    return node;
  }
  const put = (id, ...children) => $(id).replaceChildren(...children);
  const labelNames = () => status.labels.map(([name]) => name);
  const width = (share) => `${(100 * share).toFixed(1)}%`;
  const percent = (share, digits = 0) => `${(100 * share).toFixed(digits)} %`;

  function problem(text) {
    $("problem").hidden = !text;
    $("problem").textContent = text || "";
  }
  function say(text) {
    $("said").textContent = text;
  }

  async function ask(path, body) {
    const headers = { "X-Token": token };
    const options = { headers, cache: "no-store" };
    if (body) {
      headers["Content-Type"] = "application/json";
      Object.assign(options, { method: "POST", body: JSON.stringify({ tab, ...body }) });
    }
    let answer;
    try {
      answer = await fetch(`/api/${path}`, options);
    } catch {
      throw new Error("The program does not answer. All that was confirmed is saved: start it again, and open the address it prints.");
    }
    const found = await answer.json();
    if (!answer.ok) throw new Error(found.error || "Something went wrong.");
    return found;
  }

  // one thing at a time: a key pressed while an answer is on its way is not for that sample
  async function act(path, body, words) {
    if (busy) return;
    busy = true;
    acts += 1;
    try {
      const found = await ask(path, body);
      problem("");
      if (words) say(words(found));
      show(found);
    } catch (error) {
      problem(error.message);
    } finally {
      busy = false;
    }
  }

  // ---- the sample ----

  function picture(base64, shape) {
    const [height, width] = shape;
    const canvas = make("canvas", { width, height, role: "img", "aria-label": "image" });
    const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
    const context = canvas.getContext("2d");
    const image = context.createImageData(width, height);
    bytes.forEach((ink, k) => image.data.set([255 - ink, 255 - ink, 255 - ink, 255], 4 * k));
    context.putImageData(image, 0, 0);
    return canvas;
  }

  // how a column speaks for the focused label: its sign, and one of three levels
  function speaking() {
    const at = sample.marked.indexOf(focused);
    if (at < 0) return () => null;
    const values = Object.values(sample.speaks).map((terms) => Math.abs(terms[at]));
    const most = Math.max(...values, 1e-9);
    return (column) => {
      const terms = sample.speaks[column];
      const size = terms ? Math.abs(terms[at]) / most : 0;
      if (size < 0.12) return null;
      return { value: terms[at], name: `${terms[at] > 0 ? "for" : "against"} l${size > 0.66 ? 3 : size > 0.33 ? 2 : 1}` };
    };
  }

  function body() {
    const speaks = speaking();
    const said = { for: new Map(), against: new Map() };
    const marked = (text, column) => {
      const found = speaks(column);
      if (!found) return text;
      said[found.value > 0 ? "for" : "against"].set(text.toLowerCase(), Math.abs(found.value));
      return make("mark", { class: found.name }, text);
    };
    const nodes = [];
    if (sample.text !== undefined) {
      let last = 0;
      for (const [start, end, column] of sample.words) {
        nodes.push(sample.text.slice(last, start), marked(sample.text.slice(start, end), column));
        last = end;
      }
      nodes.push(sample.text.slice(last));
    } else if (sample.image) {
      nodes.push(picture(sample.image, sample.image_shape));
    } else {
      const rows = sample.cells.map(([name, value, column]) =>
        make("tr", {}, make("th", { scope: "row" }, marked(name, column)), make("td", {}, value === null ? "not known" : String(+value.toPrecision(5)))));
      nodes.push(make("table", {}, ...rows));
    }
    if (sample.beside.length)
      nodes.push(make("p", { class: "beside" }, sample.beside.map(([name, cell]) => `${name}: ${cell}`).join(" · ")));
    put("shown", ...nodes);
    const top = (words) => [...words].sort((a, b) => b[1] - a[1]).slice(0, 6).map(([word]) => word).join(", ");
    const parts = Object.entries(said).filter(([, words]) => words.size).map(([side, words]) => `${side} “${focused}”: ${top(words)}`);
    $("legend").textContent = parts.length ? `${sample.text === undefined ? "Columns" : "Words"} ${parts.join("; ")}.` : "";
  }

  function drawSample() {
    const over = !sample;
    for (const id of ["none", "skip", "accept", "name", "note"]) $(id).disabled = over;
    if (over) {
      put("which", "All samples have an answer");
      put("why", "");
      put("shown", "Look at the suspected labels, or make the model.");
      put("legend");
      return;
    }
    put("which", `Sample ${sample.row}`);
    put("why", sample.random ? "drawn at random, to know the accuracy" : sample.guesses.length ? "would teach much" : "typical of a part");
    $("note").value = sample.note;
    chosen = status.several && sample.answer ? [...sample.answer] : [];
    focused = sample.marked[0] || null;
    body();
    $("shown").scrollTop = 0;
  }

  function drawLabels() {
    const guess = new Map(sample ? sample.guesses : []);
    const names = labelNames();
    // of many labels the likely ones stand first; keys stay with their labels
    const places = names.map((_, k) => k);
    if (names.length > 9) places.sort((a, b) => (guess.get(names[b]) || 0) - (guess.get(names[a]) || 0) || a - b);
    put("labels", ...places.map((k) => {
      const name = names[k];
      const button = make("button", { type: "button" }, ...(k < 9 ? [make("kbd", {}, String(k + 1))] : []), make("span", {}, name));
      if (k < 9) button.setAttribute("aria-keyshortcuts", String(k + 1));
      if (guess.has(name)) {
        button.style.setProperty("--p", width(guess.get(name)));
        button.append(make("span", { class: "percent" }, percent(guess.get(name))));
      }
      if (status.several) button.setAttribute("aria-pressed", String(chosen.includes(name)));
      button.disabled = !sample;
      button.addEventListener("click", () => give(name));
      for (const event of ["mouseenter", "focus"])
        button.addEventListener(event, () => {
          if (sample && sample.marked.includes(name) && focused !== name) {
            focused = name;
            body();
          }
        });
      return button;
    }));
    put("names", ...names.map((name) => make("option", { value: name })));
    const taken = guessed();
    $("accept").hidden = !chosen.length && !taken.length;
    put("accept", chosen.length ? `Give ${chosen.length} ` : `It is ${taken.map((name) => `“${name}”`).join(", ")} `, make("kbd", {}, "Enter"));
    $("enter").textContent = status.several ? "gives those that are chosen, or takes the guess" : "takes the guess";
  }

  // ---- answers ----

  const answer = (labels, words) => {
    if (!sample || busy) return;
    act("answer", { sample: sample.id, labels, note: $("note").value, event: unique() }, () => words);
  };
  function give(name) {
    if (!status.several) return answer([name], `${name}. Next sample.`);
    chosen = chosen.includes(name) ? chosen.filter((each) => each !== name) : [...chosen, name];
    drawLabels();
    say(`${chosen.join(", ") || "nothing"} chosen.`);
  }
  // what Enter takes: the best guess, or all that are likely where a sample can have several
  function guessed() {
    if (!sample) return [];
    if (status.several) return sample.guesses.filter(([, p]) => p >= 0.5).map(([name]) => name);
    return sample.guesses.slice(0, 1).map(([name]) => name);
  }
  function accept() {
    const labels = chosen.length ? chosen : guessed();
    if (labels.length) answer(labels, `${labels.join(", ")}. Next sample.`);
  }
  const none = () => answer([], "None of these. Next sample.");
  const skip = () => answer(null, "Skipped. Next sample.");
  const undo = () => act("undo", {}, (found) => (found.undone ? `The last ${found.undone} is undone.` : "There is nothing to undo."));

  // ---- what is known ----

  function chart(history) {
    if (history.length < 2) return put("chart");
    const [width, height, left, bottom] = [340, 110, 32, 18];
    const most = Math.max(...history.map((h) => h.labeled));
    const x = (n) => left + ((width - left - 6) * n) / most;
    const y = (p) => 6 + (height - bottom - 6) * (1 - Math.min(Math.max(p, 0), 1));
    const line = (points) => "M" + points.map(([a, b]) => `${a.toFixed(1)} ${b.toFixed(1)}`).join("L");
    const up = history.map((h) => [x(h.labeled), y(h.accuracy + h.error)]);
    const down = history.map((h) => [x(h.labeled), y(h.accuracy - h.error)]).reverse();
    const last = history[history.length - 1];
    const label = `Accuracy against labels: ${percent(history[0].accuracy)} after ${history[0].labeled}, ${percent(last.accuracy)} after ${last.labeled}.`;
    put("chart", make("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label },
      ...[0, 0.5, 1].flatMap((p) => [
        make("line", { class: "grid", x1: left, x2: width, y1: y(p), y2: y(p) }),
        make("text", { x: left - 5, y: y(p) + 4, "text-anchor": "end" }, String(100 * p)),
      ]),
      make("path", { class: "band", d: line([...up, ...down]) + "Z" }),
      make("path", { class: "curve", d: line(history.map((h) => [x(h.labeled), y(h.accuracy)])) }),
      make("text", { x: width - 4, y: height - 4, "text-anchor": "end" }, `${most} labels`)));
  }

  function drawStatus() {
    const counts = status.labels.length;
    const extra = [status.none && `${status.none} none of these`, status.skipped && `${status.skipped} skipped`].filter(Boolean);
    $("known").textContent = `${status.labeled} of ${status.samples} labeled, ${counts} labels${extra.length ? ", " + extra.join(", ") : ""}${status.learning ? " · learning…" : ""}`;
    $("bar").setAttribute("aria-valuenow", status.labeled);
    $("bar").setAttribute("aria-valuemax", status.samples);
    $("bar").firstElementChild.style.width = width(status.labeled / Math.max(status.samples, 1));
    const known = status.estimate;
    if (known) put("accuracy", percent(known.accuracy), make("small", {}, ` give or take ${(100 * known.error).toFixed(0)}: the accuracy on ${known.n} samples drawn at random`));
    else put("accuracy", make("small", {}, "Not known yet."));
    chart(status.history);
    $("advice").textContent = status.advice.sentence;
    put("reasons", ...status.advice.reasons.map((reason) => make("li", {}, reason)));
    put("n-labels", `(${counts})`);
    put("manage", ...status.labels.map(([name, n]) => make("li", {}, make("span", {}, name), make("span", { class: "soft" }, String(n)))));
    const old = $("old").value;
    put("old", ...labelNames().map((name) => make("option", { value: name }, name)));
    if (labelNames().includes(old)) $("old").value = old;
    drawFinish();
  }

  function drawFinish() {
    const { stage, sentence, problem: wrong, model } = status.finish;
    $("finish").disabled = Boolean(stage);
    $("outcome").hidden = !(stage || wrong || model);
    if (stage) put("outcome", `Making the model: ${stage}… You can go on labeling.`);
    else if (wrong) put("outcome", wrong);
    else if (model)
      put("outcome", `${sentence} The model is in ${model}. `.trimStart(),
        make("a", { href: `/report?token=${encodeURIComponent(token)}`, target: "_blank", rel: "noopener" }, "See its page."));
  }

  function drawParts(parts) {
    put("parts", ...parts.slice(0, 20).map((part) => {
      const speaks = part.labels.length ? part.labels.map(([name, share]) => `${name} ${percent(share)}`).join(", ") : "";
      return make("li", {},
        make("div", { class: "top" }, make("span", {}, `part ${part.part} · ${percent(part.share, 1)}`), make("b", {}, speaks)),
        part.image ? picture(part.image, part.image_shape) : part.words.join(", "));
    }));
  }

  function drawSuspects(found) {
    put("n-suspects", `(${found.length})`);
    put("suspects", ...found.slice(0, 20).map((each) => {
      const text = each.shown.text === undefined ? "" : each.shown.text.replace(/\s+/g, " ").slice(0, 160);
      const given = each.labels.join(", ");
      const change = status.several
        ? (each.labels.includes(each.instead) ? each.labels.filter((n) => n !== each.instead) : [...each.labels, each.instead])
        : [each.instead];
      const done = (words) => (found) => { seen = -1; return words; };
      return make("li", {}, make("b", {}, `Sample ${each.row}: ${given}`), ` ${text}`,
        each.shown.image ? picture(each.shown.image, each.shown.image_shape) : "",
        make("div", { class: "buttons" },
          make("button", { type: "button", onclick: () => act("confirm", { sample: each.id }, done("Kept.")) }, `Keep “${given}”`),
          make("button", { type: "button", onclick: () => act("answer", { sample: each.id, labels: change, checked: true, event: unique() }, done("Changed.")) }, `Make it “${change.join(", ") || "none of these"}”`)));
    }));
  }

  function show(found) {
    status = found.status;
    if ("next" in found) {
      const same = sample && found.next && sample.id === found.next.id;
      const note = $("note").value;
      const kept = chosen;
      sample = found.next;
      drawSample();
      if (same) { $("note").value = note || sample.note; chosen = kept; }
    }
    drawLabels();
    drawStatus();
    if (found.table) put("outcome", `The table is in ${found.table}.`), ($("outcome").hidden = false);
    if (status.version !== seen) beside();
  }

  async function beside() {
    seen = status.version;
    try {
      const [parts, suspects] = await Promise.all([ask("parts"), ask("suspects")]);
      drawParts(parts);
      drawSuspects(suspects);
    } catch (error) {
      problem(error.message);
    }
  }

  // while it learns, or makes the model, look now and then; what is shown of the sample stays
  async function follow() {
    const before = acts;
    const late = () => busy || acts !== before;
    const now = await ask("status");
    if (late()) return;
    const first = sample && !sample.guesses.length && now.version !== seen;
    status = now;
    drawStatus();
    if (now.version !== seen) beside();
    if (!first || $("name").value || document.activeElement === $("note")) return;
    const found = await ask(`next?tab=${tab}`);
    if (!late()) show(found);
  }
  async function followOn() {
    try {
      if (!busy && !document.hidden) await follow();
    } catch (error) {
      problem(error.message);
    }
    setTimeout(followOn, 2000);
  }
  setTimeout(followOn, 2000);

  // ---- keys and buttons ----

  $("undo").addEventListener("click", undo);
  $("none").addEventListener("click", none);
  $("skip").addEventListener("click", skip);
  $("accept").addEventListener("click", accept);
  $("export").addEventListener("click", () => act("export", {}, () => "The table is written."));
  $("finish").addEventListener("click", () => act("finish", {}, () => "The model is being made."));
  $("typed").addEventListener("submit", (event) => {
    event.preventDefault();
    const name = $("name").value.trim();
    if (!name || !sample) return;
    $("name").value = "";
    if (status.several && !labelNames().includes(name)) status.labels.push([name, 0]);
    give(name);
    if (!status.several) $("name").blur();
  });
  $("how").addEventListener("change", () => {
    $("l-into").hidden = $("how").value === "forbid";
    $("l-having").hidden = $("how").value !== "split";
  });
  $("change").addEventListener("submit", (event) => {
    event.preventDefault();
    const [how, label, into] = [$("how").value, $("old").value, $("into").value.trim()];
    const bodies = {
      rename: { label, into }, merge: { labels: [label, into], into },
      split: { label, into, having: $("having").value.trim() }, forbid: { label },
    };
    act(how, bodies[how], () => `${label} is changed. Undo takes it back.`);
    $("into").value = "";
  });
  document.addEventListener("keydown", (event) => {
    const typing = ["INPUT", "SELECT", "TEXTAREA"].includes(document.activeElement.tagName);
    if (event.key === "Escape" && typing) return document.activeElement.blur();
    if (typing || event.metaKey || event.altKey || !status) return;
    if (event.ctrlKey) {
      if (event.key === "z") { event.preventDefault(); undo(); }
      return;
    }
    const names = labelNames();
    const keys = { 0: none, s: skip, u: undo, t: () => $("name").focus(), "/": () => $("name").focus(), n: () => $("note").focus() };
    if (/^[1-9]$/.test(event.key) && names[event.key - 1] !== undefined) give(names[event.key - 1]);
    else if (event.key === "Enter" && !["BUTTON", "A", "SUMMARY"].includes(document.activeElement.tagName)) accept();
    else if (keys[event.key]) keys[event.key]();
    else return;
    event.preventDefault();
  });

  ask(`next?tab=${tab}`).then(show).catch((error) => problem(error.message));
})();
