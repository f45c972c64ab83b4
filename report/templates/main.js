// Puts the page together: first what the verdict is, where most is lost and what helps, then all that it rests on.

const PARTS = [verdict, worst, asLanes, branches, source, flame, models, divergentInstructions, widthsAndLanes, laneMap, collecting, graphs, memory, locks];

function definitions() {
  return section("words", "What the numbers are", null,
    el("details", {}, el("summary", {}, "Definitions of every number"),
      el("dl", { class: "words" }, page.columns.flatMap(([name, text]) => [el("dt", {}, breakable(name)), el("dd", {}, prose(text))]))),
    el("details", {}, el("summary", {}, "What lane-slots are lost to"),
      el("dl", { class: "words" }, page.causes.flatMap((c) => [el("dt", {}, swatch(c.colour), c.name), el("dd", {}, prose(c.about))]))));
}

function heading(programs) {
  const [first, second] = programs;
  const names = namesApart(programs);
  document.title = `${names.join(" and ")} in lockstep`;
  const name = (p, i) => el("code", { title: p.replayed.command }, breakable(names[i]));
  const title = el("h1", {}, name(first, 0), second && [" and ", name(second, 1)], " in lockstep");
  const setting = ({ replayed: r }) => `region ${shortName(r.region, 60)} · code ${r.code} · locks ${r.locks} · ${r.threads} threads · grouping ${r.group}`;
  return [title, el("p", { class: "faint", style: "margin:0" }, setting(first))];
}

function contents() {
  const entries = [...document.querySelectorAll("main section[id]")].map((s) => [s.id, s.querySelector("h2").textContent]);
  const shortNames = { verdict: "Verdict", worst: "Worst places", "as-lanes": "GPU and SIMD", compared: "Compared", width: "Warp size", flame: "Lost slots", branches: "Branches", collecting: "Waiting", graph: "Control flow", words: "Definitions", "compared-models": "By model", changes: "By line", divergent: "Divergent", "compared-divergent": "Divergent" };
  document.getElementById("contents").replaceChildren(el("ul", {}, entries.map(([id, title]) => el("li", {}, el("a", { href: `#${id}` }, shortNames[id] ?? title)))));
}

/** What is shown other than at first: in the address behind the section, as #models?model=ipdom&side=before. */
const state = new Map(new URLSearchParams(location.hash.split("?")[1] ?? ""));

/** Keeps what is shown in the address; null where it is as at first. */
function keep(name, value) {
  if (value === null) state.delete(name);
  else state.set(name, value);
  const shown = new URLSearchParams([...state]).toString();
  history.replaceState(null, "", `${location.hash.split("?")[0] || "#"}${shown && `?${shown}`}`);
}

/** A program as the address says: about another model. */
function asKept(program) {
  const { results } = program.replayed;
  const index = results.findIndex((r) => modelOf(r.heuristic).brief === state.get("model"));
  const switched = program.switched.find((s) => s.results.includes(index));
  return switched && index !== program.chosen ? switchedTo(program, switched, index) : program;
}

/** All that is folded away is on paper. */
function forPaper() {
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    opened.forEach((d) => (d.open = true));
  });
  addEventListener("afterprint", () => opened.forEach((d) => (d.open = false)));
}

function begin() {
  const main = document.getElementById("main");
  document.getElementById("top").replaceChildren(...heading(page.programs).flat());
  document.getElementById("foot").replaceChildren(el("p", {}, `Made by ${page.tool}. This file holds everything that it shows and asks for nothing from the network.`),
    page.command && el("p", {}, "It is what this command makes: ", command(page.command)));
  const detail = el("div", { id: "program" });
  const show = (index) => showProgram(asKept(page.programs[index]));
  showModel = (program) => {
    keep("model", program.switchedFrom ? modelOf(program.replayed.results[program.chosen].heuristic).brief : null);
    showProgram(program);
    contents();
    document.getElementById("model").focus();
  };
  const showProgram = (program) => {
    detail.replaceChildren(...PARTS.map((part) => part(program)).filter(Boolean), section("taken", "What was replayed", null, notes(program)));
  };
  if (page.programs.length === 2) {
    const first = state.get("side") === "before" ? 0 : 1;
    const buttons = ["Before", "After"].map((name, i) => el("button", { type: "button", id: `show-${name.toLowerCase()}`, "aria-pressed": i === first, onclick: () => {
      buttons.forEach((b, j) => b.setAttribute("aria-pressed", j === i));
      keep("side", i === 0 ? "before" : null);
      show(i);
      contents();
    } }, name));
    main.replaceChildren(...comparison(page.programs), el("section", { "aria-label": "One of the two" }, el("h2", {}, "One of the two in full"), el("div", { class: "bar-of-buttons" }, buttons)), detail, definitions());
    show(first);
  } else {
    main.replaceChildren(detail, definitions());
    show(0);
  }
  contents();
  // A link leads to a place and says nothing of what is shown.
  addEventListener("hashchange", () => {
    if (state.size > 0 && !location.hash.includes("?")) keep("", null);
    goTo(location.hash);
  });
  // A second click on the same link goes there too.
  addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href^='#']");
    const href = link?.getAttribute("href");
    if (href && href === location.hash.split("?")[0]) goTo(href);
  });
  forPaper();
  if (location.hash) goTo(location.hash);
  document.documentElement.dataset.ready = "yes";
}

begin();
