// How lanes that are parts of threads would run elsewhere: whether in any order, as lanes of a GPU and of SIMD; and
// what to try first.

const maybePercent = (share) => number(share === null ? "unknown" : percent(share));

/** A line by its label: a link where the page shows it. */
function lineNamed(program, label) {
  const index = program.lines.findIndex((line) => line.label === label);
  return index >= 0 ? lineLink(program, index) : named(label);
}

function dependencesOf(program, rows) {
  const row = (r) => el("tr", {}, td(r.kind), number(grouped(r.count)), number(r.distance === null ? "" : grouped(r.distance)),
    td(lineNamed(program, r.from)), td(lineNamed(program, r.to)), td(named(r.variable ?? r.library ?? "")));
  return [el("h3", {}, "What lanes need of each other"),
    el("p", { class: "faint" }, "By source line: where a value is made or read, and where it is used or overwritten."),
    table(null, [["dependence"], ["count", true], ["distance", true], ["made at"], ["used at"], ["variable"]], rows.map(row), { id: "dependences" })];
}

function asLanes(program) {
  const found = program.replayed.as_lanes;
  if (!found) return null;
  const gpu = (r) => el("tr", {}, td(el("span", { class: "whole" }, r.machine)), number(grouped(r.warp_size)), number(percent(r.efficiency)), number(`${percent(r.least)} to ${percent(r.most)}`),
    number(r.accesses > 0 ? (r.transactions_32 / r.accesses).toFixed(2) : "unknown"));
  const simd = (r) => el("tr", {}, td(el("span", { class: "whole" }, `${r.lanes} lanes`)), number(percent(r.masks_set_skipping)), number(percent(r.masks_set_linearized)),
    number((r.lanes * Math.max(r.masks_set_skipping, r.masks_set_linearized)).toFixed(1)),
    maybePercent(r.contiguous), maybePercent(r.one_address), maybePercent(r.gathers), maybePercent(r.scatters));
  return section("as-lanes", "As lanes of a GPU and of SIMD", `${grouped(found.lanes)} lanes: ${found.what}.`,
    el("p", { id: "as-lanes-first" }, el("strong", {}, "What to try first: "), prose(found.first), "."),
    el("p", {}, el("strong", {}, "What limits it: "), prose(found.limit), "."),
    el("p", {}, el("strong", {}, "Dependences: "), prose(found.dependences), "."),
    found.rows?.length > 0 && dependencesOf(program, found.rows),
    el("h3", {}, "As a GPU"),
    table(null, [["machine"], ["lanes a warp", true], ["SIMT efficiency", true], ["its models say", true], ["32B transactions an access", true]], found.gpu.map(gpu)),
    el("h3", {}, "As SIMD"),
    table(null, [["vectors of"], ["masks set, skipping", true], ["linearized", true], ["speed-up at most", true], ["contiguous", true], ["one address", true], ["gathers", true], ["scatters", true]], found.simd.map(simd)),
    el("p", { class: "note" }, "Masks set: of the lanes’ places in the masks of all vector instructions, those of lanes that run. Skipping: code under an empty mask is jumped over; linearized: it runs, loops and calls aside. Memory operands lie next to each other, at one address, or apart: loads are then gathers, stores scatters."));
}
