// Another model in place of the one that the page was made about: numbers, worst places, branches and source.

const dense = (pairs, length) => {
  const all = Array(length).fill(0);
  for (const [at, n] of pairs) all[at] = n;
  return all;
};

/** The program as the page would be about another of its results; what is known about one model only is left out. */
function switchedTo(program, switched, result) {
  const none = page.causes.map(() => 0);
  const lines = program.lines.map((line) => ({ ...line, fetches: 0, thread_instructions: 0, active: [], lost_by: none, parted_by: none, memory: [], instructions: undefined }));
  for (const costs of switched.lines) {
    Object.assign(lines[costs.line], {
      fetches: costs.fetches, thread_instructions: costs.thread_instructions, active: dense(costs.active, program.replayed.results[result].warp_size),
      lost_by: dense(costs.lost_by, none.length), parted_by: dense(costs.parted_by, none.length),
    });
  }
  const lost_by = none.map((_, cause) => sum(lines.map((line) => line.lost_by[cause])));
  return { ...program, lines, chosen: result, branches: switched.branches, more_branches: 0, widths: [], maps: [], graphs: [], collecting: null, locks: null,
    flame: { name: "all", line: null, lost_by, children: [] }, switchedFrom: program };
}

/** Shows a program again about the result of that number; the page sets it. */
let showModel = () => {};

/** The control that switches the model, with each one's efficiency; null where there is no other. */
function modelSwitch(program) {
  const own = program.switchedFrom ?? program;
  const { results } = own.replayed;
  if (own.switched.length === 0) return null;
  const known = new Set([own.chosen, ...own.switched.flatMap((s) => s.results)]);
  const option = (index) => el("option", { value: index, selected: index === program.chosen }, `${modelOf(results[index].heuristic).brief} – ${percent(results[index].simt_efficiency)}`);
  const groups = page.families.map((family, f) => {
    const of = results.map((_, i) => i).filter((i) => known.has(i) && modelOf(results[i].heuristic).family === f);
    return of.length > 0 && el("optgroup", { label: family.name }, of.map(option));
  });
  const show = (index) => {
    const switched = own.switched.find((s) => s.results.includes(index));
    showModel(index === own.chosen || !switched ? own : switchedTo(own, switched, index));
  };
  return el("div", { class: "bar-of-buttons" },
    el("label", {}, "Model ", el("select", { id: "model", onchange: (e) => show(Number(e.target.value)) }, groups)),
    program.switchedFrom && el("button", { type: "button", id: "model-back", onclick: () => show(own.chosen) }, `Back to ${modelOf(results[own.chosen].heuristic).brief}`),
    program.switchedFrom && el("span", { class: "note" }, "Arms of branches, instructions, flame graph, lane map, warp sizes, control flow and locks are shown for that model only."));
}
