// The verdict: what the page says in one glance.

const efficiencyIn = (result, fetches) => (fetches > 0 ? result.thread_instructions / (fetches * result.warp_size) : 0);

/** Share of the way from nothing shared to the least possible. */
function ofBest(result) {
  const range = result.upper_bound - result.lower_bound;
  return range > 0 ? (result.upper_bound - result.fetches) / range : 1;
}

const counted = (results) => results.filter((r) => r.status === "ok");

function judgement(efficiency) {
  if (efficiency >= 0.9) return "These threads run very well in lockstep.";
  if (efficiency >= 0.7) return "These threads run well in lockstep.";
  if (efficiency >= 0.45) return "These threads run in lockstep with losses.";
  if (efficiency >= 0.2) return "These threads run badly in lockstep.";
  return "These threads hardly run in lockstep at all.";
}

/** What would help, from where most is lost. */
function advice(program, result) {
  const best = efficiencyIn(result, result.lower_bound);
  const good = counted(program.replayed.results).sort((a, b) => a.fetches - b.fetches)[0];
  const sentences = [];
  if (good.fetches < result.fetches * 0.97) {
    sentences.push(`Hardware that reconverges as ${good.heuristic} does would need ${percent(1 - good.fetches / result.fetches)} fewer fetches.`);
  }
  const place = program.collecting?.places[0];
  const gain = place ? 1 - (place.fetches + place.barrier_operations) / program.collecting.before : 0;
  if (gain > 0.03) {
    sentences.push(`Where lanes wait for each other at ${program.lines[place.line].label}, ${program.collecting.model} issues ${percent(gain)} less.`);
  }
  if (best < 0.8) {
    sentences.push(`No reconvergence scheme can bring these threads above ${percent(best)}: what they do differs; only other code, or other threads in the warp, would help.`);
  } else if (result.simt_efficiency < best - 0.05) {
    sentences.push(`The code allows ${percent(best)}: the losses come from when lanes meet again, not from what they do.`);
  }
  return sentences.join(" ");
}

function scale(result) {
  const best = efficiencyIn(result, result.lower_bound);
  const worst = efficiencyIn(result, result.upper_bound);
  const at = (share) => `left:${share * 100}%`;
  const side = (share) => (share > 0.5 ? `right:${(1 - share) * 100}%` : `left:${share * 100}%`);
  return el("div", { class: "scale", role: "img", "aria-label": `From ${percent(worst)} with nothing shared to ${percent(best)} at best: ${percent(result.simt_efficiency)}` },
    el("span", { class: "label above", style: side(worst) }, `nothing shared ${percent(worst)}`),
    el("span", { class: "label above", style: side(best) }, `best possible ${percent(best)}`),
    el("div", { class: "track" }, el("div", { class: "fill", style: `width:${result.simt_efficiency * 100}%;background:${modelColour(result.heuristic)}` })),
    el("div", { class: "tick hollow", style: at(worst) }),
    el("div", { class: "tick", style: at(best) }),
    el("span", { class: "label below", style: "left:0" }, "0%"),
    el("span", { class: "label below", style: "right:0" }, "100% of lane-slots"));
}

function verdict(program) {
  const result = program.replayed.results[program.chosen];
  const all = counted(program.replayed.results).sort((a, b) => b.simt_efficiency - a.simt_efficiency);
  const [top, last] = [all[0], all[all.length - 1]];
  const failed = program.replayed.results.length - all.length;
  const branch = program.branches[0];
  const byCause = program.flame.lost_by;
  const widest = counted(program.widths);
  return section("verdict", judgement(result.simt_efficiency), null,
    el("div", { class: "verdict" },
      el("div", {},
        el("div", { class: "big", id: "efficiency" }, percent(result.simt_efficiency)),
        el("p", {}, "SIMT efficiency under ", el("strong", {}, result.heuristic), el("br"), el("span", { class: "faint" }, "thread instructions / (warp instructions × warp size)")),
        scale(result),
        el("p", { class: "note" }, `${percent(ofBest(result))} of the way from nothing shared to the least fetches that any schedule could need.`)),
      el("div", {},
        el("p", {}, `${grouped(result.lanes)} lanes in ${result.warps === 1 ? "one warp" : `${grouped(result.warps)} warps`} of ${result.warp_size} seats ran `,
          el("strong", { "data-number": "thread_instructions" }, grouped(result.thread_instructions)), " thread instructions in ",
          el("strong", { "data-number": "fetches" }, grouped(result.fetches)), " warp instructions (fetches); ",
          el("strong", { "data-number": "lost_slots" }, grouped(result.lost_slots)), ` lane-slots were lost, ${percent(1 - result.simt_efficiency)} of all.`),
        result.lost_slots > 0 && [
          el("p", { style: "margin-bottom:0" }, "They are lost to:"),
          causesBar(byCause, sum(byCause), `Lost to ${causesText(byCause, 8)}`),
          el("ul", { class: "legend" }, page.causes.map((cause, i) => byCause[i] > 0 && el("li", { title: cause.about }, swatch(cause.colour), `${cause.name} ${percent(byCause[i] / sum(byCause))}`))),
        ],
        branch && el("p", {}, "The place that costs most is ", el("a", { href: "#branch-0", id: "worst-branch" }, branch.line === null ? branch.place : program.lines[branch.line].label),
          ` (${percent(sum(branch.lost_by) / result.lost_slots)} of what is lost: ${causesText(branch.lost_by)}).`),
        el("p", {}, `Over ${all.length} models the efficiency goes from ${percent(last.simt_efficiency)} (${last.heuristic}) to ${percent(top.simt_efficiency)} (${top.heuristic})`,
          failed > 0 ? `; ${failed} ${failed === 1 ? "deadlocks" : "deadlock"}.` : ".",
          widest.length > 1 && ` With ${widest[0].warp_size} seats in a warp it is ${percent(widest[0].simt_efficiency)}, with ${widest[widest.length - 1].warp_size} it is ${percent(widest[widest.length - 1].simt_efficiency)}.`),
        el("p", {}, advice(program, result)))));
}

function notes(program) {
  return [
    el("p", { class: "note" }, program.replayed.view),
    program.notes.map((note) => el("p", { class: "note" }, note)),
  ];
}
