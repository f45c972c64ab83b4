// Models ranked against the bounds, the width sweep, and the histogram of active lanes.

/** Results of one family that are alike in all that a table shows, as one: [[result, …], …], the best first. */
function alike(results, key) {
  const found = new Map();
  for (const result of results) {
    const of = result.status === "ok" ? String(key(result)) : `${result.heuristic} ${result.status}`;
    found.set(of, [...(found.get(of) ?? []), result]);
  }
  return [...found.values()];
}

/** Bodies of a table of models: a family each, with its heading; `row` makes the row of results that are alike. */
function byFamily(results, key, columns, row) {
  return page.families.map((family, f) => {
    const own = alike(results.filter((r) => modelOf(r.heuristic).family === f), key);
    if (own.length === 0) return null;
    const heading = el("tr", { class: "heading" }, el("th", { scope: "rowgroup", colspan: columns }, swatch(family.colour), family.name, el("span", { class: "faint" }, ` ${family.about}`)));
    return el("tbody", {}, heading, own.map(row));
  }).filter(Boolean);
}

/** The names of results that share a row. */
function namesOf(results) {
  return td(results.flatMap((r, i) => [i > 0 && el("br"), el("span", { class: "model" }, swatch(modelColour(r.heuristic)), modelName(r.heuristic, r.deadlock ? " *" : ""))]));
}

const rowOf = (results, chosen) => ({ class: results.includes(chosen) ? "chosen" : null, "data-heuristic": results.map((r) => r.heuristic).join(" ") });

function models(program) {
  const results = [...program.replayed.results];
  const chosen = results[program.chosen];
  results.sort((a, b) => (b.simt_efficiency ?? -1) - (a.simt_efficiency ?? -1));
  const best = efficiencyIn(chosen, chosen.lower_bound);
  const worst = efficiencyIn(chosen, chosen.upper_bound);
  const all = counted(results);
  const [top, last] = [all[0], all[all.length - 1]];
  const row = (same) => {
    const [r] = same;
    if (r.status !== "ok") return el("tr", rowOf(same, chosen), namesOf(same), el("td", { colspan: 5, class: "faint" }, r.status));
    return el("tr", rowOf(same, chosen), namesOf(same),
      el("td", { class: "bar", "data-value": r.simt_efficiency }, el("div", { class: "meter", "aria-hidden": "true" },
        el("i", { style: `width:${r.simt_efficiency * 100}%;background:${modelColour(r.heuristic)}` }),
        el("b", { style: `left:${best * 100}%` }), el("b", { class: "hollow", style: `left:${worst * 100}%` }))),
      number(percent(r.simt_efficiency)), number(percent(ofBest(r))), number(grouped(r.fetches)), number(percent(r.divergent_fetches / r.fetches)));
  };
  const columns = [["model"], ["0 to 100%"], ["SIMT efficiency", true], ["of bound", true], ["fetches", true], ["divergent", true]];
  const key = (r) => [r.fetches, r.thread_instructions, r.divergent_fetches, Boolean(r.deadlock)].join();
  const widest = counted(program.widths);
  return section("models", "Models", `Reconvergence models on the same trace, by family; those of one family that agree in all these numbers share a row. The solid line is the bound, which no schedule of these instructions exceeds (${percent(best)}), the dotted one is no sharing at all (${percent(worst)}).`,
    el("p", {}, `Over ${all.length} models the efficiency goes from ${percent(last.simt_efficiency)} (`, modelName(last.heuristic), `) to ${percent(top.simt_efficiency)} (`, modelName(top.heuristic), ")",
      results.length > all.length ? `; ${results.length - all.length} ${results.length - all.length === 1 ? "deadlocks" : "deadlock"}.` : ".",
      widest.length > 1 && ` With ${widest[0].warp_size} seats in a warp it is ${percent(widest[0].simt_efficiency)}, with ${widest[widest.length - 1].warp_size} it is ${percent(widest[widest.length - 1].simt_efficiency)}.`),
    table(null, columns, byFamily(results, key, columns.length, row), { class: "bars" }),
    results.filter((r) => r.deadlock).map((r) => el("p", { class: "note" }, `* ${r.deadlock}, with the program as it is written; its numbers are those of lanes that take turns at locks (locks: simt).`)));
}

/** A column per value; `items` are {label, share, text, note, mark}. */
function columnsChart(items, label, axis, colour) {
  const [width, height, left, bottom, top] = [460, 210, 46, 40, 18];
  const step = (width - left) / items.length;
  const y = (share) => top + (height - top - bottom) * (1 - share);
  const most = Math.max(...items.map((i) => i.share), ...items.map((i) => i.mark ?? 0));
  const scale = [0.1, 0.2, 0.5].find((m) => most <= m) ?? 1;
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((t) => t * scale);
  const every = Math.ceil(items.length / 16);
  return el("figure", {}, svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label },
    ticks.map((t) => [
      svg("line", { x1: left, x2: width, y1: y(t / scale), y2: y(t / scale), class: "grid" }),
      svg("text", { x: left - 6, y: y(t / scale) + 4, "text-anchor": "end", "font-size": 11, class: "faint" }, `${Math.round(t * 1000) / 10}%`)]),
    items.map((item, i) => {
      const x = left + i * step;
      const gap = items.length > 40 ? step * 0.05 : step * 0.16;
      const end = y(item.share / scale);
      const bound = y((item.mark ?? 0) / scale);
      // Over its bar; over the bound's line only where that leaves no room between.
      const label = item.mark === undefined || bound < end - 18 ? end - 5 : Math.min(end, bound) - 5;
      return svg("g", {}, svg("title", {}, item.note),
        svg("rect", { x: x + gap, width: step - 2 * gap, y: end, height: Math.max(item.share > 0 ? 1 : 0, height - bottom - end), fill: colour, opacity: item.faint ? 0.45 : 1 }),
        item.mark !== undefined && svg("line", { x1: x + gap / 2, x2: x + step - gap / 2, y1: y(item.mark / scale), y2: y(item.mark / scale), stroke: "var(--ink)", "stroke-width": 2 }),
        item.text && svg("text", { x: x + step / 2, y: label, "text-anchor": "middle", "font-size": 11 }, item.text),
        (i % every === 0 || i === items.length - 1) && svg("text", { x: x + step / 2, y: height - bottom + 15, "text-anchor": "middle", "font-size": 11 }, item.label));
    }),
    svg("line", { x1: left, x2: width, y1: height - bottom, y2: height - bottom, class: "axis" }),
    svg("text", { x: (left + width) / 2, y: height - 6, "text-anchor": "middle", "font-size": 11, class: "faint" }, axis)));
}

function widths(program) {
  const result = program.replayed.results[program.chosen];
  const items = counted(program.widths).map((w) => ({
    label: String(w.warp_size), share: w.simt_efficiency, text: percent(w.simt_efficiency), mark: efficiencyIn(w, w.lower_bound), faint: w.warp_size > w.lanes,
    note: `${w.warp_size} seats: SIMT efficiency ${percent(w.simt_efficiency)} in ${grouped(w.fetches)} fetches, bound ${percent(efficiencyIn(w, w.lower_bound))}`,
  }));
  const wide = items.some((i) => i.faint);
  return el("div", {},
    el("h3", { id: "widths" }, "By warp size"),
    el("p", { class: "note" }, "SIMT efficiency of ", modelName(result.heuristic), "; lines: the bound at that size.", wide && ` Pale: more seats than the ${grouped(result.lanes)} lanes can fill.`),
    columnsChart(items, `SIMT efficiency by warp size: ${items.map((i) => `${i.label}: ${i.text}`).join(", ")}`, "seats in a warp", modelColour(result.heuristic)));
}

function histogram(program) {
  const result = program.replayed.results[program.chosen];
  const items = result.active_histogram.map((n, i) => ({
    label: String(i + 1), share: n / result.fetches, note: `${i + 1} active: ${grouped(n)} fetches (${percent(n / result.fetches)})`,
  }));
  return el("div", {},
    el("h3", { id: "histogram" }, "Active lanes"),
    el("p", { class: "note" }, "Share of fetches with so many active lanes."),
    columnsChart(items, `Fetches by active lanes: ${items.filter((i) => i.share >= 0.01).map((i) => `${i.label}: ${percent(i.share)}`).join(", ")}`, "active lanes", modelColour(result.heuristic)));
}

function widthsAndLanes(program) {
  return section("width", "Warp size and active lanes", null, el("div", { class: "two" }, program.widths.length > 0 && widths(program), histogram(program)));
}

function memory(program) {
  const result = program.replayed.results[program.chosen];
  if (!result.memory_uniform) return null;
  const classes = [["uniform", "all lanes access one address"], ["affine", "addresses follow the lane number by a stride"], ["scattered", "neither"]];
  const total = sum(classes.map(([name]) => sum(result[`memory_${name}`])));
  const rows = classes.map(([name, about]) => {
    const n = sum(result[`memory_${name}`]);
    return el("tr", {}, td(name), td(el("div", { class: "meter", "aria-hidden": "true" }, el("i", { style: `width:${(n / Math.max(total, 1)) * 100}%;background:var(--accent)` }))), number(percent(n / Math.max(total, 1))), number(grouped(n)), el("td", { class: "faint" }, about));
  });
  const lines = program.lines.map((line, i) => [line, i]).filter(([line]) => line.memory.length > 0 && sum(line.memory) > 0);
  lines.sort(([a], [b]) => b.memory[2] - a.memory[2] || sum(b.memory) - sum(a.memory));
  const ofLine = lines.slice(0, 30).map(([line, i]) => el("tr", {}, td(lineLink(program, i)), el("td", {}, el("code", { class: "faint" }, sourceTextOf(program, line))), line.memory.map((n) => number(grouped(n)))));
  return section("memory", "Memory", "Memory operands of fetches, by how the addresses of the active lanes lie.",
    table(null, [["class"], ["bar"], ["share", true], ["operands", true], ["meaning"]], rows),
    el("h3", {}, "By line"), table(`The ${ofLine.length} lines with the most scattered operands, of ${lines.length} that access memory.`, [["line"], ["source"], ["uniform", true], ["affine", true], ["scattered", true]], ofLine));
}

function locks(program) {
  if (!program.locks || program.locks.length === 0) return null;
  const columns = Object.keys(program.locks[0]).filter((name) => typeof program.locks[0][name] === "number");
  const row = (lock) => el("tr", {}, td(named(lock.lock ?? lock.name ?? "", 60)), columns.map((name) => number(grouped(lock[name]))));
  return section("locks", "Locks", "What each lock costs a warp: how often it was taken, how often a lane had to wait, and the lane-slots that lanes waited for it.",
    table(null, [["lock"], ...columns.map((name) => [name.replaceAll("_", " "), true])], program.locks.map(row)));
}
