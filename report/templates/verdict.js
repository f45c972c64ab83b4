// The verdict: what the page says in one glance.

const efficiencyIn = (result, fetches) => (fetches > 0 ? result.thread_instructions / (fetches * result.warp_size) : 0);

/** Share of the way from nothing shared to the lower bound of fetches. */
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
  return "These threads run very badly in lockstep.";
}

/** What would help, from where most is lost. */
function advice(program, result) {
  const best = efficiencyIn(result, result.lower_bound);
  const good = counted(program.replayed.results).filter((r) => page.families[modelOf(r.heuristic).family]?.name !== "bounds").sort((a, b) => a.fetches - b.fetches)[0];
  const sentences = [];
  if (good && good.fetches < result.fetches * 0.97) {
    sentences.push(`${modelOf(good.heuristic).brief} needs ${percent(1 - good.fetches / result.fetches)} fewer fetches on this trace.`);
  }
  const place = program.collecting?.places[0];
  const gain = place ? 1 - (place.fetches + place.barrier_operations) / program.collecting.before : 0;
  if (gain > 0.03) {
    sentences.push(`Where lanes wait for each other at ${program.lines[place.line].label}, ${program.collecting.model} issues ${percent(gain)} less.`);
  }
  if (best < 0.8) {
    sentences.push(`No schedule of these instructions in these warps is above ${percent(best)}: beyond that, only other code or other lanes in the warp would help.`);
  } else if (result.simt_efficiency < best - 0.05) {
    sentences.push(`The bound is ${percent(best)}: up to that, losses may come from when lanes meet again; other code can do better.`);
  }
  return sentences.join(" ");
}

/** The efficiency between its bounds. Each bound's label has a row of its own: they cannot meet. */
function scale(result) {
  const best = efficiencyIn(result, result.lower_bound);
  const worst = efficiencyIn(result, result.upper_bound);
  const at = (share) => `left:${share * 100}%`;
  const side = (share) => (share > 0.5 ? `right:${(1 - share) * 100}%` : at(share));
  return el("div", { class: "scale", role: "img", "aria-label": `Between ${percent(worst)} with nothing shared and the bound of ${percent(best)}: ${percent(result.simt_efficiency)}` },
    el("span", { class: "label above", style: side(best) }, `bound ${percent(best)}`),
    el("div", { class: "track" }, el("div", { class: "fill", style: `width:${result.simt_efficiency * 100}%;background:${modelColour(result.heuristic)}` })),
    el("div", { class: "tick hollow", style: at(worst) }),
    el("div", { class: "tick", style: at(best) }),
    el("span", { class: "label below", style: side(worst) }, `nothing shared ${percent(worst)}`));
}

/** What `replay` says of the program, where the page has it. */
const verdictOf = (program) => (program.replayed.verdict?.heuristic === program.replayed.results[program.chosen].heuristic ? program.replayed.verdict : null);

function verdict(program) {
  const result = program.replayed.results[program.chosen];
  const said = verdictOf(program);
  const byCause = program.flame.lost_by;
  const headline = said ? said.headline[0].toUpperCase() + said.headline.slice(1) : judgement(result.simt_efficiency);
  return section("verdict", headline, null, modelSwitch(program),
    said && el("p", { class: said.coverage.is_low ? "warning" : "faint", id: "coverage" }, sentence(said.coverage.sentence)),
    said?.range && el("p", { class: "faint", id: "range" }, `Range: ${said.range.sentence}`),
    said?.time && el("p", { class: "faint", id: "time" }, sentence(said.time.sentence)),
    said?.warnings.map((text) => el("p", { class: "warning" }, sentence(text))),
    el("div", { class: "verdict" },
      el("div", {},
        el("div", { class: "big", id: "efficiency" }, percent(result.simt_efficiency)),
        el("p", {}, "SIMT efficiency under ", el("strong", {}, modelName(result.heuristic)), el("br"), el("span", { class: "faint" }, `${said ? "of the processor’s instructions: " : ""}thread instructions / (warp instructions × warp size)`)),
        said && el("p", { class: "note", id: "counts" }, program.replayed.counts ? `${sentenceCase(program.replayed.counts)}.` : "The headline counts a GPU’s instructions."),
        scale(result),
        el("p", { class: "note" }, `${percent(ofBest(result))} of the way from nothing shared to the bound, which no schedule of these instructions exceeds and none need reach.`)),
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
        said?.sentences.map((text) => el("p", {}, sentence(text))))));
}

/** The places that cost most, as they are shown: those of the verdict, or else the worst branches. */
function worstPlaces(program, result) {
  const branchAt = (label) => program.branches.findIndex((b) => b.line !== null && program.lines[b.line].label === label);
  const said = verdictOf(program);
  if (said) {
    return said.places.map((place) => {
      const index = branchAt(place.at);
      const line = program.lines.findIndex((l) => l.label === place.at);
      return { label: place.at, within: place.in, index, line, share: place.share, lostBy: program.branches[index]?.lost_by ?? null, causes: place.causes, remedies: place.remedy ? [place.remedy, ...(place.more_remedies ?? [])] : [] };
    });
  }
  return program.branches.slice(0, 3).map((branch, index) => ({
    label: branch.line === null ? branch.place : program.lines[branch.line].label, within: branch.line === null ? "" : program.lines[branch.line].functions.join(", inlined into "),
    index, line: branch.line ?? -1, share: sum(branch.lost_by) / Math.max(1, result.lost_slots), lostBy: branch.lost_by, causes: causesText(branch.lost_by), remedies: [] }));
}

/** The worst places, with what would help at each. */
function worst(program) {
  const result = program.replayed.results[program.chosen];
  const places = worstPlaces(program, result);
  if (places.length === 0) return null;
  const cards = places.map((place, i) => {
    const target = place.index >= 0 ? `#branch-${place.index}` : place.line >= 0 ? `#${lineId(place.line)}` : null;
    const text = place.line >= 0 ? sourceTextOf(program, program.lines[place.line]) : "";
    return el("li", { class: "place" },
      el("div", { class: "place-head" }, target ? el("a", { href: target, id: i === 0 ? "worst-branch" : null }, named(place.label)) : named(place.label),
        place.within && el("span", { class: "faint" }, " in ", place.within.split(", inlined into ").flatMap((name, j) => [j > 0 ? ", inlined into " : "", named(name, 36)])),
        el("span", { class: "place-share" }, `${percent(place.share)} of what is lost`)),
      text && el("code", { class: "place-code" }, text),
      el("div", { class: "place-bar" }, place.lostBy ? el("div", { style: `width:${Math.max(2, place.share * 100)}%` }, causesBar(place.lostBy, Math.max(1, sum(place.lostBy)), place.causes)) : null),
      el("div", { class: "note" }, `Lost to ${place.causes}.`),
      place.remedies.map((remedy) => el("p", { class: "remedy" }, el("strong", {}, "Advice: "), prose(remedy.text), "; ", el("span", { class: "gain" }, remedy.gain.replaceAll(" -> ", " → ")), ".")));
  });
  const more = verdictOf(program) ? "" : advice(program, result);
  return section("worst", "Where most is lost, and what would help", null, el("ol", { class: "places" }, cards), more && el("p", { id: "advice" }, more));
}

function notes(program) {
  return [
    el("p", { class: "note" }, program.replayed.view),
    program.notes.map((note) => el("p", { class: "note" }, prose(note))),
  ];
}
