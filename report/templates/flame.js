// The divergence flame graph: call paths from top to bottom, width and colours for lost lane-slots by cause.

/** Each cause's colour for its share of the frame. */
function stripes(byCause) {
  const total = sum(byCause);
  let at = 0;
  const stops = page.causes.flatMap((cause, i) => {
    if (byCause[i] === 0) return [];
    const from = at;
    at += (byCause[i] / total) * 100;
    return [`${cause.colour} ${from}% ${at}%`];
  });
  return `linear-gradient(to right, ${stops.join(", ")})`;
}

function flame(program) {
  const total = sum(program.flame.lost_by);
  if (total === 0 || program.flame.children.length === 0) return null;
  const result = program.replayed.results[program.chosen];
  const path = el("p", { class: "note", role: "status", "aria-live": "polite" });
  const draw = (root, above) => {
    const say = (frame, slots) => `${frame.name}: ${grouped(slots)} lost lane-slots, ${percent(slots / total)} of all (${causesText(frame.lost_by, 8)})`;
    const item = (frame, parentSlots, ways) => {
      const slots = sum(frame.lost_by);
      const text = say(frame, slots);
      const button = el("button", {
        type: "button", title: text, style: `background:${stripes(frame.lost_by)}`, "aria-label": text,
        onclick: () => {
          if (frame.line !== null) location.hash = lineId(frame.line);
          else draw(frame, ways);
        },
      }, el("span", {}, shortName(frame.name, 60)));
      const children = frame.children.map((child) => item(child, slots, [...ways, frame]));
      return el("li", { style: `width:${(slots / parentSlots) * 100}%` }, button, children.length > 0 && el("ul", {}, children));
    };
    graph.replaceChildren(el("ul", {}, item(root, sum(root.lost_by), above)));
    path.replaceChildren(...(above.length === 0 ? ["A click on a function shows it alone, a click on a line goes to it."] : [
      ...above.flatMap((frame, i) => [el("button", { type: "button", onclick: () => draw(frame, above.slice(0, i)) }, named(frame.name)), " › "]), named(root.name)]));
  };
  const graph = el("div", { class: "flame", id: "flame-graph" });
  draw(program.flame, []);
  return section("flame", "Where lane-slots are lost", `Call paths downwards, each function's lines last. The whole width is ${grouped(total)} lost lane-slots of ${modelOf(result.heuristic).brief}; colours are what they are lost to. What is narrower than a 2000th is left out.`,
    el("ul", { class: "legend" }, page.causes.map((cause, i) => program.flame.lost_by[i] > 0 && el("li", { title: cause.about }, swatch(cause.colour), cause.name))),
    path, graph);
}
