// Divergent thread instructions under every model, stacked under the others: for one program, or for two, before over
// after.

/** The share of a result's thread instructions that are in divergent fetches, 0 to 1. */
const divergentShare = (r) => (r.thread_instructions > 0 ? r.divergent_instructions / r.thread_instructions : 0);

/** A bar of two parts, divergent instructions first; it is `length` (0 to 1) of its cell long. */
function stack(result, colour, length) {
  const words = `${grouped(result.divergent_instructions)} of ${grouped(result.thread_instructions)} thread instructions (${percent(divergentShare(result))}) in divergent fetches`;
  return el("div", { class: "stack", style: `width:${length * 100}%`, title: words, "aria-hidden": "true" },
    el("i", { style: `width:${divergentShare(result) * 100}%;background:${colour}` }));
}

const divergentKey = (before) => el("ul", { class: "legend" },
  el("li", {}, swatch("var(--stack-before)"), before ? "in divergent fetches: upper bars before, lower bars, coloured, after" : "coloured: in divergent fetches (fewer active lanes than live)"),
  el("li", {}, swatch("var(--stack-rest)"), "in all other fetches"));

function divergentInstructions(program) {
  const chosen = program.replayed.results[program.chosen];
  const row = (same) => {
    const [r] = same;
    if (r.status !== "ok") return el("tr", rowOf(same, chosen), namesOf(same), el("td", { colspan: 3, class: "faint" }, r.status));
    return el("tr", rowOf(same, chosen), namesOf(same), el("td", { class: "bar" }, stack(r, modelColour(r.heuristic), 1)),
      number(grouped(r.divergent_instructions)), number(percent(divergentShare(r))));
  };
  const columns = [["model"], ["thread instructions"], ["divergent", true], ["share", true]];
  const key = (r) => [r.divergent_instructions, r.thread_instructions].join();
  return section("divergent", "Divergent instructions", `Thread instructions that lanes ran in fetches with fewer active lanes than live ones, of ${grouped(chosen.thread_instructions)} in all.`,
    divergentKey(false), table(null, columns, byFamily(program.replayed.results, key, columns.length, row), { class: "stacks" }));
}

/** The change of a share in percentage points, as text and class. */
function pointsOf(before, after) {
  const points = (after - before) * 100;
  if (points === 0) return el("span", { class: "faint" }, "same");
  const size = Math.abs(points) < 0.05 ? "<0.1" : Math.abs(points).toFixed(1);
  return el("span", { class: points < 0 ? "better" : "worse" }, `${points < 0 ? "−" : "+"}${size} pts ${points < 0 ? "better" : "worse"}`);
}

function divergentCompared([before, after]) {
  const both = before.replayed.results.map((b) => [b, after.replayed.results.find((a) => a.heuristic === b.heuristic)]).filter(([, a]) => a);
  const counted = both.flat().filter((r) => r.status === "ok");
  const most = Math.max(1, ...counted.map((r) => r.thread_instructions));
  const bar = (r, colour, shares) => (r.status === "ok" ? stack(r, colour, shares ? 1 : r.thread_instructions / most) : el("p", { class: "note" }, r.status));
  const figure = (r, shares) => (r.status !== "ok" ? "–" : shares ? percent(divergentShare(r)) : grouped(r.divergent_instructions));
  const afterOf = new Map(both);
  const row = (same, b, a, shares) => el("tr", rowOf(same, null), namesOf(same),
    el("td", { class: "bar" }, bar(b, "var(--stack-before)", shares), bar(a, modelColour(a.heuristic), shares)),
    number(figure(b, shares)), number(figure(a, shares)),
    number(b.status !== "ok" || a.status !== "ok" ? "–" : shares ? pointsOf(divergentShare(b), divergentShare(a)) : change(b.divergent_instructions, a.divergent_instructions)));
  const drawn = el("div", {});
  const buttons = ["Counts", "Shares"].map((name) => el("button", { type: "button", id: `divergent-${name.toLowerCase()}`, onclick: () => {
    keep("divergent", name === "Shares" ? "shares" : null);
    show(name);
  } }, name));
  const show = (name) => {
    const shares = name === "Shares";
    buttons.forEach((b) => b.setAttribute("aria-pressed", b.textContent === name));
    const columns = [["model"], [shares ? "share of thread instructions" : "thread instructions"], ["before", true], ["after", true], ["change", true]];
    const key = (b) => [b, afterOf.get(b)].flatMap((r) => [r.status, r.divergent_instructions, r.thread_instructions]).join();
    drawn.replaceChildren(table(null, columns, byFamily([...afterOf.keys()], key, columns.length, (same) => row(same, same[0], afterOf.get(same[0]), shares)), { class: "stacks" }));
  };
  show(state.get("divergent") === "shares" ? "Shares" : "Counts");
  return section("compared-divergent", "Divergent instructions, before and after", "Thread instructions that lanes ran in fetches with fewer active lanes than live ones.",
    divergentKey(true), el("div", { class: "bar-of-buttons" }, buttons), drawn);
}
