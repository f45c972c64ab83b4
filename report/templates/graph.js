// Control-flow graphs: blocks and the ways between them, with what is lost.

function way(edge, most) {
  const p = edge.points.map(([x, y]) => [x, y]);
  let d = `M${p[0]}`;
  if (edge.from === edge.to) d += ` C${p[1]} ${p[2]} ${p[3]}`;
  for (let i = 1; i < p.length && edge.from !== edge.to; i++) {
    const [a, b] = [p[i - 1], p[i]];
    const middle = (a[1] + b[1]) / 2;
    d += ` C${a[0]},${middle} ${b[0]},${middle} ${b[0]},${b[1]}`;
  }
  const share = edge.lost / Math.max(1, most);
  const text = `${grouped(edge.crossings)} lanes in ${grouped(edge.times)} groups; the block behind it lost ${grouped(edge.lost)} slots`;
  return svg("path", { d, class: edge.lost > 0 ? "lost" : null, "stroke-width": 1 + 5 * Math.sqrt(share), "stroke-opacity": edge.lost > 0 ? 0.45 + 0.55 * share : 0.7, "marker-end": edge.lost > 0 ? "url(#arrow-lost)" : "url(#arrow)" }, svg("title", {}, text));
}

/** The height of a label on a way, and about how wide one of its characters is. */
const [LABEL, LETTER] = [12, 6];

/**
 * Labels of the edges that lose most, each where it covers no earlier one: in the middle of its edge, else nearer to an
 * end; and how far to the right they reach.
 */
function edgeLabels(edges, most) {
  const placed = [];
  const labels = edges.filter((edge) => edge.lost > 0 && edge.lost >= most * 0.02).sort((a, b) => b.lost - a.lost).map((edge) => {
    const text = short(edge.lost);
    const half = (text.length * LETTER) / 2;
    const p = edge.points;
    const middle = Math.floor((p.length - 1) / 2);
    const between = (share) => [p[middle][0] + (p[middle + 1][0] - p[middle][0]) * share, p[middle][1] + (p[middle + 1][1] - p[middle][1]) * share];
    // What leads back to where it began has its label beside it.
    const places = edge.from === edge.to ? [[p[1][0] - 2 + half, (p[0][1] + p[3][1]) / 2]] : [0.5, 0.35, 0.65, 0.2, 0.8].map(between);
    const covers = ([x, y]) => placed.some((other) => Math.abs(x - other.x) < half + other.half && Math.abs(y - other.y) < LABEL);
    const [x, y] = places.find((at) => !covers(at)) ?? places[0];
    placed.push({ x, y, half });
    return svg("text", { class: "on-edge", x, y: y + 3, "text-anchor": "middle" }, text);
  });
  return { labels, right: Math.max(0, ...placed.map(({ x, half }) => x + half + 4)) };
}

function linesText(program, node) {
  const known = node.lines.map((i) => program.lines[i]).filter((l) => l.file !== null);
  if (known.length === 0) return node.place;
  const inMain = known.filter((l) => l.file === known[0].file).map((l) => l.number);
  const [first, last] = [Math.min(...inMain), Math.max(...inMain)];
  const file = known[0].label.split(":")[0];
  const name = file.length > 14 ? `${file.slice(0, 12)}…` : file;
  return `${name}:${first === last ? first : `${first}–${last}`}`;
}

function drawGraph(program, graph) {
  const size = program.replayed.results[program.chosen].warp_size;
  if (graph.nodes.length === 0) return el("p", { class: "note" }, `It has ${graph.blocks} blocks: too many to draw.`);
  const most = Math.max(1, ...graph.edges.map((e) => e.lost));
  const { labels, right } = edgeLabels(graph.edges, most);
  const [width, height] = [Math.max(graph.size[0], right), graph.size[1]];
  const node = (n) => {
    const [x, y] = [n.at[0] - 75, n.at[1] - 22];
    const efficiency = n.fetches > 0 ? n.thread_instructions / (n.fetches * size) : 0;
    const text = `${n.place}: ${grouped(n.fetches)} fetches, SIMT efficiency ${percent(efficiency)}, ${grouped(n.lost)} slots lost`;
    const best = [...n.lines].sort((a, b) => lostOf(program.lines[b]) - lostOf(program.lines[a]))[0];
    return svg("a", { href: best === undefined ? null : `#${lineId(best)}` }, svg("title", {}, text),
      svg("rect", { x, y, width: 150, height: 44, rx: 4 }),
      svg("rect", { x: x + 6, y: y + 33, width: 138, height: 6, style: "fill:var(--idle);stroke:none" }),
      svg("rect", { x: x + 6, y: y + 33, width: 138 * efficiency, height: 6, style: "fill:var(--accent);stroke:none" }),
      svg("text", { x: x + 7, y: y + 14, "font-weight": 600 }, linesText(program, n)),
      svg("text", { x: x + 7, y: y + 27, class: "faint" }, `${short(n.fetches)} fetches`),
      n.lost > 0 && svg("text", { x: x + 143, y: y + 27, "text-anchor": "end", style: "fill:var(--bad)" }, `−${short(n.lost)}`));
  };
  const arrow = (id, style) => svg("marker", { id, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, markerUnits: "userSpaceOnUse", orient: "auto" }, svg("path", { d: "M0,0 L8,4 L0,8 z", style: `${style};stroke:none` }));
  return el("div", { class: "graph", tabindex: 0, role: "group", "aria-label": `Control-flow graph of ${program.functions[graph.function].name}` },
    svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height },
      svg("defs", {}, arrow("arrow", "fill:var(--faint)"), arrow("arrow-lost", "fill:var(--bad)")),
      graph.edges.map((e) => way(e, most)), graph.nodes.map(node), labels));
}

function graphs(program) {
  if (program.graphs.length === 0) return null;
  const place = el("div", {});
  const show = (index) => place.replaceChildren(drawGraph(program, program.graphs[index]));
  show(0);
  const name = (g) => `${shortName(program.functions[g.function].name)} (${grouped(program.functions[g.function].lost)} slots lost)`;
  return section("graph", "Control flow", "Blocks of a function, and the edges that lanes took between them. The bar in a block is its SIMT efficiency; a red edge is as thick as the loss in the block that it leads to, by the lanes that took it. Functions that lose most come first.",
    el("div", { class: "bar-of-buttons" }, el("label", {}, "Function ", el("select", { id: "graph-function", onchange: (e) => show(Number(e.target.value)) }, program.graphs.map((g, i) => el("option", { value: i }, name(g)))))),
    place);
}
