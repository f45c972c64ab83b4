// The worst branches with their arms, and the annotated source.

const lostOf = (line) => sum(line.lost_by);

function armItem(program, arm, all) {
  return el("li", {}, "to ", lineLink(program, arm.line), el("span", { class: "faint" }, " (", named(arm.place), ")"),
    `: ${grouped(arm.crossings)} lanes in ${grouped(arm.times)} groups, ${percent(arm.crossings / Math.max(1, all))}; its block lost ${grouped(arm.lost)} slots`);
}

function branchCard(program, branch, index) {
  const result = program.replayed.results[program.chosen];
  const lost = sum(branch.lost_by);
  const all = sum(branch.arms.map((a) => a.crossings));
  const line = branch.line === null ? null : program.lines[branch.line];
  const text = line && sourceTextOf(program, line);
  return el("article", { class: "card", id: `branch-${index}`, "data-lost": lost },
    el("h3", {}, `${index + 1}. `, line ? lineLink(program, branch.line) : named(branch.place), line && el("span", { class: "faint" }, " ", named(branch.place))),
    text && el("code", { class: "place-code" }, text),
    el("p", { style: "margin:.3rem 0" }, `${grouped(lost)} lost lane-slots, ${percent(lost / result.lost_slots)} of all: ${causesText(branch.lost_by)}. `),
    causesBar(branch.lost_by, lost, causesText(branch.lost_by, 8)),
    branch.arms.length > 1 && [el("div", { class: "note" }, "From here lanes went"), el("ul", { class: "arms" }, branch.arms.slice(0, 6).map((arm) => armItem(program, arm, all)))],
    el("div", { class: "note" }, "While they were apart the others ran ", branch.meanwhile.map(([at, slots], i) => [i > 0 ? ", " : "", lineLink(program, at), ` (${percent(slots / lost)})`]), "."));
}

function branches(program) {
  if (program.branches.length === 0) return null;
  const [first, rest] = [program.branches.slice(0, 6), program.branches.slice(6)];
  return section("branches", "Where lanes part", "The last instruction that lanes ran together before some of them ran on without the others, those that cost most first.",
    first.map((b, i) => branchCard(program, b, i)),
    rest.length > 0 && el("details", {}, el("summary", {}, `${rest.length} more${program.more_branches > 0 ? ` (and ${program.more_branches} that are not on this page)` : ""}`), rest.map((b, i) => branchCard(program, b, i + 6))));
}

/** Where waiting for other lanes pays: what each place could save, and what it did. */
function collecting(program) {
  const found = program.collecting;
  if (!found || found.places.length === 0) return null;
  const [before, best] = [found.before, found.places[0]];
  const saved = (p) => before - p.fetches - p.barrier_operations;
  const rows = found.places.map((p) => el("tr", { "data-predict": p.predict },
    td(lineLink(program, p.line), el("span", { class: "faint" }, " ", named(p.place))), td(p.pattern), number(p.threshold ?? "all"), number(grouped(p.expected)),
    number(grouped(saved(p))), number(percent(saved(p) / before)), number(grouped(p.fetches)), number(percent(p.simt_efficiency ?? 0)), number(grouped(p.barrier_operations))));
  const columns = [["collect lanes at"], ["pattern"], ["wait for", true], ["could save", true], ["saves", true], ["of all", true], [found.unit, true], ["SIMT efficiency", true], ["barriers", true]];
  return section("collecting", "Where waiting for other lanes pays", `Lanes that reach a place at different times are collected there before they go on: tried on this trace under ${found.model}, at ${found.tried} ${found.tried === 1 ? "place that loses" : "places that lose"} fetches, one at a time. Without it there are ${grouped(before)} ${found.unit}.`,
    table(null, columns, rows),
    el("p", { class: "note" }, "wait for: how many lanes are enough; could save: the fetches fewer if all that is behind the place in its loop were fetched for full warps; saves: what collecting lanes there did save, less the instructions of its barriers. To see one: ",
      command(`replay --predict ${best.predict}${best.threshold === null ? "" : `,threshold=${best.threshold}`} --by line ${program.replayed.trace}`)));
}

function sourceTextOf(program, line) {
  if (line.file === null) return "";
  const piece = program.files[line.file].pieces.find((p) => p.first <= line.number && line.number < p.first + p.text.length);
  return piece ? piece.text[line.number - piece.first].trim() : "";
}

/** Fetches of a line by active lanes, at most 16 columns, as a small picture. */
function spark(line, lanes) {
  const columns = Math.min(16, lanes);
  const shares = Array(columns).fill(0);
  line.active.forEach((n, i) => (shares[Math.floor((i * columns) / lanes)] += n));
  const most = Math.max(...shares);
  const words = line.active.map((n, i) => [n, i + 1]).filter(([n]) => n > line.fetches * 0.05).map(([n, i]) => `${i} active: ${percent(n / line.fetches)}`).join(", ");
  return el("span", { class: "spark", role: "img", "aria-label": words, title: `Fetches by active lanes, 1 to ${lanes}. ${words}` },
    shares.map((n) => el("i", { style: `height:${n === 0 ? 0 : Math.max(8, (n / most) * 100)}%` })));
}

function lostBar(byCause, most) {
  const slots = sum(byCause);
  if (slots === 0) return null;
  return el("span", { class: "lost-bar", style: `width:${Math.max(2, (slots / most) * 70)}px`, title: causesText(byCause, 8) },
    page.causes.map((cause, i) => byCause[i] > 0 && el("i", { style: `width:${(byCause[i] / slots) * 100}%;background:${cause.colour}` })));
}

/**
 * Columns that lines and instructions share: lost slots with their causes, fetches, active lanes, efficiency, and slots
 * of lanes that parted there.
 */
function costCells(of, { most, size, lost: all }) {
  const [lost, parted] = [lostOf(of), sum(of.parted_by)];
  const cause = lost > 0 ? page.causes[of.lost_by.indexOf(Math.max(...of.lost_by))].name : "";
  const cell = (className, title, ...children) => el("td", { class: className, title }, ...children);
  return [cell("number", lost > 0 ? `${percent(lost / all)} of all that is lost` : null, grouped(lost)),
    cell("cause", lost > 0 ? `lost to ${causesText(of.lost_by, 8)}` : null, lostBar(of.lost_by, most), cause && el("span", { class: "note" }, ` ${cause}`)),
    number(grouped(of.fetches)), td(spark(of, size)), number(of.fetches > 0 ? percent(of.thread_instructions / (of.fetches * size)) : ""),
    cell("number", parted > 0 ? `of lanes that parted here: ${causesText(of.parted_by, 8)}` : null, parted > 0 ? grouped(parted) : "")];
}

/** How strongly a row is shaded, and in which colour: what most is lost to, the more the more is lost. */
function shadeOf(of, most) {
  const lost = lostOf(of);
  return lost > 0 ? `--heat:color-mix(in srgb, ${mainColour(of.lost_by)} ${Math.round(15 + 85 * Math.sqrt(lost / most))}%, transparent)` : null;
}

/** What a shaded row says when it is pointed at: cause and cost. */
function costText(of, all) {
  const lost = lostOf(of);
  return lost > 0 ? `loses ${grouped(lost)} lane-slots, ${percent(lost / all)} of all, to ${causesText(of.lost_by, 8)}` : "loses nothing";
}

function sourceRow(program, index, text, totals) {
  const line = program.lines[index];
  const inlined = line.functions.length > 1 ? `inlined: ${line.functions.join(" in ")}` : line.functions[0];
  return el("tr", { id: lineId(index), class: "ran", style: shadeOf(line, totals.most), tabindex: -1, "data-line": line.label, "data-index": index, "data-lost": lostOf(line), "data-fetches": line.fetches },
    el("td", { class: "no", "data-value": line.number }, line.number || ""),
    el("td", { class: "code", title: `${text === null ? "" : `${text.trim()}\n`}${inlined}\n${costText(line, totals.lost)}` },
      text === null ? el("span", { class: "faint" }, "in ", named(line.functions[0], 40)) : line.file === null ? named(text, 60) : text),
    costCells(line, totals), isProved(program) && provedCell(line));
}

const SHORT = { uniform: "u", affine: "a", divergent: "d" };

/** What is proved about a line: its branches, loads, stores and atomics by class, with strides; all when pointed at. */
function provedCell(line) {
  const all = line.proved ?? [];
  const kinds = ["branch", "load", "store", "atomic"].map((what) => [what, all.filter((p) => p.what === what)]);
  const words = kinds.filter(([, these]) => these.length > 0).map(([what, these]) => {
    const names = these.map((p) => SHORT[p.class] + (p.class === "affine" && p.stride !== null ? p.stride : ""));
    return `${what} ${[...new Set(names)].join(" ")}`;
  });
  const values = all.filter((p) => p.what === "value");
  const counts = Object.keys(SHORT).map((c) => [SHORT[c], values.filter((p) => p.class === c).length]).filter(([, n]) => n > 0);
  if (words.length === 0 && counts.length > 0) words.push(counts.map(([c, n]) => `${n} ${c}`).join(", "));
  return el("td", { class: "proved", title: all.map((p) => `${p.what} ${p.name}: ${p.class}, ${p.fact}`).join("\n") }, words.join("; "));
}

/** Whether there is anything of that kind on the page. */
const isProved = (program) => program.lines.some((line) => line.proved);

const COST_COLUMNS = [["lost slots", true], ["lost to"], ["fetches", true], ["active lanes"], ["efficiency", true], ["parted here", true]];
const COST_WIDTHS = ["5rem", "9.5rem", "5rem", "5.6rem", "4.8rem", "5.4rem"];

/** A table of lines or instructions: the columns before their costs, and those behind. */
function costTable(name, before, after, rows) {
  const columns = [...before.map(([title, , number]) => [title, number]), ...COST_COLUMNS, ...after];
  const whole = el("table", { class: "source", "aria-label": name },
    el("colgroup", {}, [...before.map(([, width]) => width), ...COST_WIDTHS, ...after.map(() => "9rem")].map((w) => el("col", { style: `width:${w}` }))),
    el("thead", {}, el("tr", {}, columns.map(([title, n]) => el("th", { scope: "col", class: n ? "number" : null }, title)))), el("tbody", {}, rows));
  return el("div", { class: "table" }, sortable(whole, "Find in these lines"), el("div", { class: "scrolls" }, whole));
}

const sourceTable = (program, name, rows) => costTable(name, [["line", "4.2rem", true], ["source", "auto"]], isProved(program) ? [["proved"]] : [], rows);

/** A file's rows: its text where it is there, with the numbers of the lines that ran. */
function fileRows(program, fileIndex, indices, totals) {
  const at = new Map(indices.map((i) => [program.lines[i].number, i]));
  const { pieces } = program.files[fileIndex];
  const columns = 2 + COST_COLUMNS.length + (isProved(program) ? 1 : 0);
  if (pieces.length === 0) return [...at.keys()].sort((a, b) => a - b).map((n) => sourceRow(program, at.get(n), null, totals));
  const rows = [];
  let after = 1;
  for (const piece of pieces) {
    if (piece.first > after) rows.push(el("tr", { class: "gap" }, el("td", { class: "no", colspan: columns, "aria-label": `lines ${after} to ${piece.first - 1} did not run` })));
    piece.text.forEach((text, i) => {
      const no = piece.first + i;
      rows.push(at.has(no) ? sourceRow(program, at.get(no), text, totals) : el("tr", { class: "plain" }, el("td", { class: "no" }, no), el("td", { class: "code faint", colspan: columns - 1, title: text.trim() }, text)));
      at.delete(no);
    });
    after = piece.first + piece.text.length;
  }
  for (const [, index] of at) rows.push(sourceRow(program, index, "(the file has no such line now)", totals));
  return rows;
}

/** The instructions of some lines, by address, with the columns of the source beside them; null if there are none. */
function disassembly(program, name, indices, totals) {
  const all = indices.flatMap((i) => (program.lines[i].instructions ?? []).map((instruction) => [instruction, i]));
  if (all.length === 0) return null;
  all.sort(([a], [b]) => a.address - b.address);
  let last = null;
  const rows = all.flatMap(([instruction, i]) => {
    const line = program.lines[i];
    const address = instruction.address.toString(16);
    const row = el("tr", { class: "ran instruction", style: shadeOf(instruction, totals.mostOfInstructions), "data-index": i, "data-line": line.label },
      el("td", { class: "no", "data-value": instruction.address }, address),
      el("td", { class: "code", title: `${instruction.text}\n${line.label}\n${costText(instruction, totals.lost)}` }, instruction.text), costCells(instruction, { ...totals, most: totals.mostOfInstructions }));
    const gap = last !== null && line.functions[0] !== last ? [el("tr", { class: "gap" }, el("td", { class: "no", colspan: 2 + COST_COLUMNS.length, "aria-label": line.functions[0] }))] : [];
    last = line.functions[0];
    return [...gap, row];
  });
  return costTable(`instructions of ${name}`, [["address", "7.5rem", true], ["instruction", "auto"]], [], rows);
}

/** Source and, beside it, its instructions: a click on a row marks what belongs to it on the other side. */
function beside(lines, instructions) {
  if (!instructions) return lines;
  const both = el("div", { class: "beside" }, lines, instructions);
  both.addEventListener("click", (event) => {
    const row = event.target.closest("tr[data-index]");
    if (!row) return;
    both.querySelectorAll("tr.picked").forEach((other) => other.classList.remove("picked"));
    const same = [...both.querySelectorAll(`tr[data-index="${row.dataset.index}"]`)];
    same.forEach((other) => other.classList.add("picked"));
    const across = same.find((other) => other.classList.contains("instruction") !== row.classList.contains("instruction"));
    across?.scrollIntoView({ block: "nearest" });
  });
  return both;
}

function source(program) {
  const ran = program.lines.map((_, i) => i).filter((i) => program.lines[i].fetches > 0);
  const instructions = ran.flatMap((i) => program.lines[i].instructions ?? []);
  const totals = {
    size: program.replayed.results[program.chosen].warp_size,
    most: Math.max(1, ...ran.map((i) => lostOf(program.lines[i]))),
    mostOfInstructions: instructions.reduce((most, i) => Math.max(most, lostOf(i)), 1),
    lost: Math.max(1, sum(program.flame.lost_by)),
  };
  const lostIn = (indices) => sum(indices.map((i) => lostOf(program.lines[i])));
  const files = program.files
    .map((file, f) => [file, f, ran.filter((i) => program.lines[i].file === f)])
    .filter(([, , indices]) => indices.length > 0)
    .sort((a, b) => lostIn(b[2]) - lostIn(a[2]));
  const nameless = ran.filter((i) => program.lines[i].file === null).sort((a, b) => lostOf(program.lines[b]) - lostOf(program.lines[a]));
  const part = section("source", "Source", "Each line's fetches, how many lanes were active in them, and the lane-slots lost: in its own fetches, and by lanes that parted there." +
      (isProved(program) ? " Beside that what is proved without running it: branches and the addresses of accesses are uniform (u), affine with a stride in bytes (a4) or divergent (d)." : "") +
      (instructions.length > 0 ? " Beside the lines are their instructions; a click on either marks the other." : ""),
    el("ul", { class: "legend", id: "source-legend" }, el("li", { class: "faint" }, "A line's shade shows the cause of most of its lost slots; the stronger, the more:"),
      page.causes.map((cause, i) => program.flame.lost_by[i] > 0 && el("li", { title: cause.about }, swatch(cause.colour), cause.name))),
    files.map(([file, f, indices], n) =>
      el("details", { open: n < 3 }, el("summary", {}, el("code", {}, breakable(file.path)), `: ${grouped(lostIn(indices))} slots lost in ${indices.length} ${indices.length === 1 ? "line" : "lines"}`),
        beside(sourceTable(program, file.path, fileRows(program, f, indices, totals)), disassembly(program, file.path, indices, totals)))),
    nameless.length > 0 && el("details", { open: files.length === 0 }, el("summary", {}, `Functions whose lines are not known: ${grouped(lostIn(nameless))} slots lost`),
      beside(sourceTable(program, "functions without lines", nameless.map((i) => sourceRow(program, i, program.lines[i].label, totals))), disassembly(program, "functions without lines", nameless, totals))));
  if (instructions.length > 0) part.classList.add("wide");
  return part;
}

/** Opens what a link leads into, and goes there. */
function goTo(hash) {
  const id = decodeURIComponent(hash.slice(1).split("?")[0]);
  const target = id !== "" && document.getElementById(id);
  if (!target) return;
  for (let above = target.parentElement; above; above = above.parentElement) if (above.tagName === "DETAILS") above.open = true;
  target.scrollIntoView({ block: target.tagName === "SECTION" ? "start" : "center" });
  target.focus({ preventScroll: true });
}
