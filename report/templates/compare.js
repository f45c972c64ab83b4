// Two programs side by side: what became better and what worse.

/** A change as text and class: fewer is better, except for efficiencies (true); null where neither is. */
function change(before, after, moreIsBetter) {
  if (before === after) return el("span", { class: "faint" }, "same");
  const better = after > before === Boolean(moreIsBetter);
  const text = before === 0 ? "new" : `${after > before ? "+" : "−"}${Math.abs(((after - before) / before) * 100).toFixed(1)}%`;
  // More or less work is neither.
  if (moreIsBetter === null) return el("span", {}, text);
  return el("span", { class: better ? "better" : "worse" }, `${text} ${better ? "better" : "worse"}`);
}

/** Lines of both programs: in files that differ a line is the same where its text is, else where its number is. */
function pairedLines(before, after) {
  const found = new Map();
  [before, after].forEach((program, side) => program.lines.forEach((line, index) => {
    if (line.fetches === 0 && sum(line.parted_by) === 0) return;
    const was = side === 1 ? page.was[line.label] ?? line.label : line.label;
    const key = was === "" ? `new ${line.label}` : was;
    const entry = found.get(key) ?? { label: was || line.label, sides: [null, null] };
    if (was !== "" && was !== line.label) entry.label = `${was} → ${line.label}`;
    const known = entry.sides[side];
    entry.sides[side] = { index, lost: lostOf(line) + (known?.lost ?? 0), fetches: line.fetches + (known?.fetches ?? 0), text: sourceTextOf(program, line) };
    found.set(key, entry);
  }));
  const none = { index: null, lost: 0, fetches: 0, text: "" };
  return [...found.values()].map(({ label, sides }) => ({ label, before: sides[0] ?? none, after: sides[1] ?? none }));
}

function lineChanges(before, after) {
  const lines = pairedLines(before, after).map((l) => ({ ...l, by: l.after.lost - l.before.lost })).filter((l) => l.by !== 0 || l.after.fetches !== l.before.fetches);
  lines.sort((a, b) => Math.abs(b.by) - Math.abs(a.by) || Math.abs(b.after.fetches - b.before.fetches) - Math.abs(a.after.fetches - a.before.fetches));
  const most = Math.max(1, ...lines.map((l) => Math.abs(l.by)));
  const row = (l) => el("tr", { "data-line": l.label, "data-change": l.by },
    td(el("code", { class: l.label.length < 28 ? "whole" : null }, named(l.label))), el("td", {}, el("code", { class: "faint" }, (l.after.text || l.before.text).slice(0, 60))),
    number(grouped(l.before.fetches)), number(grouped(l.after.fetches)), number(grouped(l.before.lost)), number(grouped(l.after.lost)),
    td(el("div", { class: "delta", "aria-hidden": "true" }, el("i", { class: l.by < 0 ? "better" : "worse", style: `width:${(Math.abs(l.by) / most) * 50}%` }))),
    number(l.by === 0 ? el("span", { class: "faint" }, "same") : el("span", { class: l.by < 0 ? "better" : "worse" }, `${l.by > 0 ? "+" : "−"}${grouped(Math.abs(l.by))} ${l.by > 0 ? "worse" : "better"}`)));
  const columns = [["line"], ["source"], ["fetches before", true], ["after", true], ["lost before", true], ["after", true], ["better ◂ ▸ worse"], ["slots", true]];
  const part = (title, list) => list.length > 0 && [el("h3", {}, `${title} (${list.length})`), table(null, columns, list.slice(0, 25).map(row)), list.length > 25 && el("details", {}, el("summary", {}, `${list.length - 25} more lines`), table(null, columns, list.slice(25, 400).map(row)))];
  return section("changes", "Line by line", "Lost lane-slots in each line's fetches, before and after. Lines are matched by their text; where that is not known, by file name and number.",
    lines.length === 0 && el("p", {}, "No line changed in its fetches or in what it lost."),
    part("Better", lines.filter((l) => l.by < 0)), part("Worse", lines.filter((l) => l.by > 0)), part("As many slots lost, other fetches", lines.filter((l) => l.by === 0)));
}

function comparison([before, after]) {
  const names = namesApart([before, after]);
  const [old, now] = [before, after].map((p) => p.replayed.results[p.chosen]);
  const fields = [["simt_efficiency", "SIMT efficiency", true], ["fetches", "fetches (warp instructions)"], ["lost_slots", "lost lane-slots"], ["divergent_fetches", "divergent fetches"], ["thread_instructions", "thread instructions", null], ["lower_bound", "lower bound of fetches", null]];
  const shown = (name, n) => (name === "simt_efficiency" ? percent(n) : grouped(n));
  const rows = fields.map(([name, title, more]) => el("tr", {}, el("th", { scope: "row" }, title), number(shown(name, old[name])), number(shown(name, now[name])), number(change(old[name], now[name], more))));
  const causes = page.causes.map((cause, i) => [cause, before.flame.lost_by[i], after.flame.lost_by[i]]).filter(([, a, b]) => a + b > 0);
  const most = Math.max(sum(before.flame.lost_by), sum(after.flame.lost_by), 1);
  const speed = old.fetches / now.fetches;
  const sentence = speed > 1.005 ? `After, ${percent(1 - 1 / speed)} fewer fetches are needed: ${speed.toFixed(2)} times as fast, if each fetch takes as long.`
    : speed < 0.995 ? `After, ${percent(1 / speed - 1)} more fetches are needed.` : "Both need about as many fetches.";
  const work = now.thread_instructions / old.thread_instructions - 1;
  const caution = Math.abs(work) < 0.02 ? "" : ` But the two do not run as much: after runs ${percent(Math.abs(work))} ${work > 0 ? "more" : "fewer"} thread instructions.`;
  const both = before.replayed.results.map((b) => [b, after.replayed.results.find((a) => a.heuristic === b.heuristic)]).filter(([b, a]) => a && a.status === "ok" && b.status === "ok");
  const afterOf = new Map(both);
  const columns = [["model"], ["efficiency before", true], ["after", true], ["fetches before", true], ["after", true], ["change", true]];
  const key = (b) => [b, afterOf.get(b)].flatMap((r) => [r.fetches, r.thread_instructions]).join();
  const row = (same) => {
    const [b, a] = [same[0], afterOf.get(same[0])];
    return el("tr", rowOf(same, null), namesOf(same),
      number(percent(b.simt_efficiency)), number(percent(a.simt_efficiency)), number(grouped(b.fetches)), number(grouped(a.fetches)), number(change(b.fetches, a.fetches)));
  };
  return [
    section("compared", [before, after].some((p) => p.replayed.verdict?.holds === false) ? "No figure holds: see what is said of each below" : now.fetches === old.fetches ? "Before and after alike" : now.fetches < old.fetches ? "After is better" : "After is worse", `${sentence}${caution} Both under ${modelOf(old.heuristic).brief}.`,
      el("p", {}, "Before: ", el("code", { title: before.replayed.command }, breakable(`${names[0]} (${before.replayed.trace})`)), el("br"), "After: ", el("code", { title: after.replayed.command }, breakable(`${names[1]} (${after.replayed.trace})`))),
      page.unlike.map((text) => el("p", { class: "warning unlike" }, `${sentenceCase(text)}.`)),
      table(null, [["number of"], ["before", true], ["after", true], ["change", true]], rows),
      el("h3", {}, "What lane-slots are lost to"),
      [["before", before], ["after", after]].map(([name, p]) => el("div", {}, el("span", { class: "note" }, `${name}: ${grouped(sum(p.flame.lost_by))} slots`),
        el("div", { style: `width:${(sum(p.flame.lost_by) / most) * 100}%;min-width:1rem` }, causesBar(p.flame.lost_by, sum(p.flame.lost_by), `${name}: ${causesText(p.flame.lost_by, 8)}`)))),
      el("ul", { class: "legend" }, causes.map(([cause, a, b]) => el("li", { title: cause.about }, swatch(cause.colour), `${cause.name} `, change(a, b))))),
    lineChanges(before, after),
    divergentCompared([before, after]),
    section("compared-models", "Under every model", "Fetches before and after; models of one family that agree in all these numbers share a row.", table(null, columns, byFamily([...afterOf.keys()], key, columns.length, row))),
  ];
}
