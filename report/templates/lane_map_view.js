// The lane map on the screen: drawing, zooming by wheel, drag, buttons and keys, and a text about what the pointer is
// on.

/** Single fetches are drawn from so many pixels of a fetch on. */
const LEAST_PIXELS = 0.5;
/** The fewest fetches shown. */
const FEWEST = 16;
/** The height of the axis, and of the marks of windows above it, in pixels. */
const [AXIS, MARKS] = [22, 7];

class LaneMapView {
  constructor(program) {
    this.program = program;
    this.byLine = false;
    this.cursor = null;
    this.root = el("div", {});
    this.show(0);
  }

  show(index) {
    this.lanes = new LaneMap(this.program, this.program.maps[index]);
    [this.start, this.end] = [0, this.lanes.map.fetches];
    this.visited = -1;
    const { map } = this.lanes;
    this.rowHeight = Math.max(2, Math.min(18, Math.floor(420 / map.lanes.length)));
    this.canvas = el("canvas", {
      id: "map", tabindex: 0, role: "img", "aria-describedby": "map-readout map-shown",
      "aria-label": "Lane map. Arrow keys move, plus and minus zoom, Home shows the whole run, w goes to the next window of single fetches.",
    });
    this.readout = el("div", { class: "map-readout", id: "map-readout", role: "status", "aria-live": "polite" });
    this.colourKey = el("div", {}, this.legend());
    this.shown = el("p", { class: "note", id: "map-shown", role: "status", "aria-live": "polite" });
    const every = Math.ceil(12 / this.rowHeight);
    const names = map.lanes.map((name, i) => el("span", { title: name, style: `height:${this.rowHeight}px` }, i % every === 0 ? `lane ${i}` : ""));
    this.root.replaceChildren(this.controls(index),
      el("div", { class: "map" }, el("div", { class: "names", "aria-hidden": "true", style: `grid-auto-rows:${this.rowHeight}px` }, names), this.canvas),
      this.shown, this.readout, this.colourKey);
    this.listen();
    requestAnimationFrame(() => this.draw());
  }

  controls(index) {
    const button = (id, text, action, more) => el("button", { id, type: "button", onclick: action, ...more }, text);
    const { maps } = this.program;
    const windows = this.lanes.map.windows;
    const whole = windows.length === 1 && windows[0].kept === "whole";
    this.colourButton = button("map-colour", "Colour by line", () => {
      this.byLine = !this.byLine;
      this.colourButton.setAttribute("aria-pressed", this.byLine);
      this.colourKey.replaceChildren(this.legend());
      this.draw();
    }, { "aria-pressed": this.byLine });
    return el("div", { class: "bar-of-buttons" },
      button("map-in", "Zoom in", () => this.zoom(0.5)),
      button("map-out", "Zoom out", () => this.zoom(2)),
      button("map-whole", "Whole run", () => this.look(0, this.lanes.map.fetches)),
      button("map-left", "←", () => this.move(-0.5), { "aria-label": "Earlier" }),
      button("map-right", "→", () => this.move(0.5), { "aria-label": "Later" }),
      button("map-worst", whole ? "Single fetches" : "Worst single fetches", () => this.nextWindow()),
      this.colourButton,
      maps.length > 1 && el("label", {}, "Warp ", el("select", { onchange: (e) => this.show(Number(e.target.value)) },
        maps.map((m, i) => el("option", { value: i, selected: i === index }, String(m.warp))))));
  }

  /** What the colours stand for: functions, or the lines that most single cells of the map show. */
  legend() {
    if (this.byLine) return this.lineLegend();
    const names = this.program.functions.filter((f) => f.fetches > 0).slice(0, FUNCTION_COLOURS.length);
    const more = this.program.functions.filter((f) => f.fetches > 0).length - names.length;
    return el("ul", { class: "legend", "aria-label": "Functions by colour" },
      names.map((f, i) => el("li", {}, swatch(functionColour(i)), el("code", {}, named(f.name)))), more > 0 && el("li", {}, swatch(OTHER_COLOUR), `${more} other functions`));
  }

  lineLegend() {
    const { lines, pcs } = this.program;
    const shown = [...new Set(pcs.line)].sort((a, b) => lines[b].thread_instructions - lines[a].thread_instructions);
    const most = shown.slice(0, 24);
    return el("ul", { class: "legend", id: "map-lines", "aria-label": "Lines by colour" },
      most.map((i) => el("li", {}, swatch(lineColour(i)), lineLink(this.program, i))),
      shown.length > most.length && el("li", { class: "faint" }, `and ${shown.length - most.length} lines that ran less, each with a colour of its own; pointing at the map names its line`));
  }

  look(start, end) {
    const { fetches } = this.lanes.map;
    const span = Math.min(fetches, Math.max(FEWEST, end - start));
    this.start = Math.max(0, Math.min(start, fetches - span));
    this.end = this.start + span;
    this.draw();
  }

  zoom(factor, at = 0.5) {
    const span = this.end - this.start;
    const middle = this.start + span * at;
    const next = Math.min(this.lanes.map.fetches, Math.max(FEWEST, span * factor));
    this.look(middle - next * at, middle - next * at + next);
  }

  move(share) {
    const by = (this.end - this.start) * share;
    this.look(this.start + by, this.end + by);
  }

  /**
   * To single fetches: for a short run where they stand apart, for a long one to the windows that lost most, one after
   * another.
   */
  nextWindow() {
    const windows = this.lanes.map.windows;
    if (windows.length === 1 && windows[0].kept === "whole") {
      const middle = (this.start + this.end) / 2;
      const span = Math.min(128, windows[0].fetches);
      return this.look(middle - span / 2, middle + span / 2);
    }
    const order = windows.map((_, i) => i).sort((a, b) => windows[b].lost - windows[a].lost);
    this.visited = (this.visited + 1) % order.length;
    const found = windows[order[this.visited]];
    return this.look(found.start, found.start + found.fetches);
  }

  draw() {
    const { canvas, lanes } = this;
    const { map } = lanes;
    const scale = window.devicePixelRatio || 1;
    const width = Math.max(50, canvas.parentElement.clientWidth - canvas.previousSibling.offsetWidth - 8);
    const height = map.lanes.length * this.rowHeight + MARKS + AXIS;
    canvas.width = width * scale;
    canvas.height = height * scale;
    canvas.style.height = `${height}px`;
    const context = canvas.getContext("2d");
    context.scale(scale, scale);
    const style = getComputedStyle(document.documentElement);
    this.ink = (name) => style.getPropertyValue(name);
    this.width = width;
    this.scale = scale;
    context.fillStyle = this.ink("--idle");
    context.fillRect(0, 0, width, map.lanes.length * this.rowHeight);
    const perPixel = (this.end - this.start) / width;
    const single = 1 / perPixel >= LEAST_PIXELS;
    const level = lanes.level(perPixel);
    this.drawBins(context, level);
    const drawn = single ? this.drawFetches(context) : 0;
    this.drawMarks(context);
    this.drawAxis(context);
    this.drawCursor(context);
    this.say(level, drawn);
  }

  pixel(x) {
    return Math.round(x * this.scale) / this.scale;
  }

  x(fetch) {
    return ((fetch - this.start) / (this.end - this.start)) * this.width;
  }

  drawBins(context, level) {
    const [first, last] = [Math.floor(this.start / level.bin), Math.min(level.bins, Math.ceil(this.end / level.bin))];
    const gap = this.rowHeight > 6 ? 1 : 0;
    for (let bin = first; bin < last; bin++) {
      // Whole pixels: seams between bins would look like a pattern of the program's.
      const left = this.pixel(Math.max(0, this.x(bin * level.bin)));
      const right = this.pixel(this.x(Math.min(this.lanes.map.fetches, (bin + 1) * level.bin)));
      for (let lane = 0; lane < this.lanes.lanes; lane++) {
        const cell = this.lanes.cell(level, bin, lane);
        if (cell.share === 0) continue;
        context.globalAlpha = Math.max(0.07, cell.share);
        context.fillStyle = this.lanes.colour(cell.pc, cell.fn, this.byLine);
        context.fillRect(left, lane * this.rowHeight, Math.max(right - left, 1 / this.scale), this.rowHeight - gap);
      }
    }
    context.globalAlpha = 1;
  }

  /** Draws the single fetches in view; returns how many. */
  drawFetches(context) {
    const { lanes, program } = this;
    const rows = lanes.lanes * this.rowHeight;
    const gap = this.rowHeight > 6 ? 1 : 0;
    let drawn = 0;
    lanes.map.windows.forEach((window, index) => {
      const [from, to] = [Math.max(this.start, window.start), Math.min(this.end, window.start + window.fetches)];
      if (from >= to) return;
      context.fillStyle = this.ink("--idle");
      context.fillRect(this.x(from), 0, this.x(to) - this.x(from), rows);
      for (const stretch of lanes.window(index)) {
        if (stretch.start + stretch.count <= from || stretch.start >= to) continue;
        for (let i = 0; i < stretch.count; i++) {
          const fetch = stretch.start + i;
          if (fetch + 1 <= from || fetch >= to) continue;
          drawn += 1;
          const [left, right] = [this.x(fetch), this.x(fetch + 1)];
          const between = right - left > 4 ? 0.8 : 0;
          context.fillStyle = lanes.colour(stretch.pc + i, program.pcs.function[stretch.pc + i], this.byLine);
          for (let lane = 0; lane < lanes.lanes; lane++) {
            if (lanes.isActive(stretch.mask, lane)) context.fillRect(left, lane * this.rowHeight, right - left - between, this.rowHeight - gap);
          }
        }
      }
    });
    return drawn;
  }

  /** Where single fetches were kept. */
  drawMarks(context) {
    const y = this.lanes.lanes * this.rowHeight + 2;
    for (const window of this.lanes.map.windows) {
      const [left, right] = [this.x(window.start), this.x(window.start + window.fetches)];
      if (right < 0 || left > this.width) continue;
      context.fillStyle = this.ink(window.kept === "worst" ? "--bad" : "--faint");
      context.fillRect(left, y, Math.max(2, right - left), 3);
    }
  }

  drawAxis(context) {
    const y = this.lanes.lanes * this.rowHeight + MARKS;
    const span = this.end - this.start;
    const rough = span / Math.max(2, this.width / 110);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = Math.max(1, [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough));
    context.font = "11px system-ui, sans-serif";
    context.fillStyle = this.ink("--faint");
    context.textBaseline = "top";
    for (let at = Math.ceil(this.start / step) * step; at <= this.end; at += step) {
      const x = this.x(at);
      const text = span < 20000 ? grouped(at) : short(at);
      const size = context.measureText(text).width;
      context.fillRect(Math.min(x, this.width - 1), y, 1, 4);
      context.fillText(text, Math.max(0, Math.min(x - size / 2, this.width - size)), y + 7);
    }
  }

  drawCursor(context) {
    if (!this.cursor) return;
    const { fetch, lane } = this.cursor;
    const left = this.x(fetch);
    context.strokeStyle = this.ink("--ink");
    context.lineWidth = 1;
    context.strokeRect(left - 0.5, lane * this.rowHeight - 0.5, Math.max(2, this.x(fetch + 1) - left), this.rowHeight);
  }

  say(level, drawn) {
    const { map } = this.lanes;
    const span = Math.round(this.end - this.start);
    const detail = drawn >= span - 2 ? "single fetches" : drawn > 0 ? `single fetches where they were kept, else bins of ${grouped(level.bin)}` : level.bin === 1 ? "bins of 1 fetch" : `bins of ${grouped(level.bin)} fetches`;
    this.canvas.dataset.detail = drawn > 0 ? "single" : "bins";
    this.canvas.dataset.start = Math.round(this.start);
    this.canvas.dataset.end = Math.round(this.end);
    const whole = map.windows.length === 1 && map.windows[0].kept === "whole";
    this.shown.textContent = `Fetches ${grouped(Math.round(this.start))} to ${grouped(Math.round(this.end))} of ${grouped(map.fetches)}: ${detail}. ` +
      (whole ? "Every single fetch was kept." : `Single fetches were kept of ${map.windows.length} windows (marks under the map): of each 32nd of the run the first ${grouped(map.windows[0]?.fetches ?? 0)} fetches, and those that lost most (red).`);
  }

  /** Says what a lane does at a fetch. */
  describe(number, lane) {
    const { lanes } = this;
    const fetch = Math.max(0, Math.min(lanes.map.fetches - 1, Math.floor(number)));
    this.cursor = { fetch, lane };
    const perPixel = (this.end - this.start) / this.width;
    const single = 1 / perPixel >= LEAST_PIXELS ? lanes.single(fetch) : null;
    if (single) {
      const state = lanes.isActive(single.mask, lane) ? "active" : "not active";
      this.readout.textContent = `fetch ${grouped(fetch)}: ${lanes.place(single.pc)}   ${lanes.sourceText(single.pc)}\n` +
        `mask ${lanes.maskText(single.mask)}   ${lanes.activeCount(single.mask)} of ${lanes.lanes} active\nlane ${lane} (${lanes.map.lanes[lane]}): ${state}`;
      return this.readout.textContent;
    }
    const level = lanes.level(perPixel);
    const bin = Math.min(level.bins - 1, Math.floor(fetch / level.bin));
    const cell = lanes.cell(level, bin, lane);
    let busy = 0;
    for (let l = 0; l < lanes.lanes; l++) busy += lanes.cell(level, bin, l).share;
    this.readout.textContent = `fetches ${grouped(bin * level.bin)} to ${grouped(Math.min(lanes.map.fetches, (bin + 1) * level.bin))}: ${percent(busy / lanes.lanes)} of lane-slots busy\n` +
      `lane ${lane} (${lanes.map.lanes[lane]}): active in ${percent(cell.share)}${cell.share > 0 ? `, mostly at ${lanes.place(cell.pc)}   ${lanes.sourceText(cell.pc)}` : ""}`;
    return this.readout.textContent;
  }

  listen() {
    const { canvas } = this;
    const at = (event) => {
      const box = canvas.getBoundingClientRect();
      const share = (event.clientX - box.left) / box.width;
      const lane = Math.max(0, Math.min(this.lanes.lanes - 1, Math.floor((event.clientY - box.top) / this.rowHeight)));
      return { share, lane, fetch: this.start + share * (this.end - this.start) };
    };
    let drag = null;
    canvas.addEventListener("pointermove", (event) => {
      const { share, lane, fetch } = at(event);
      if (drag) return this.look(drag.start - (share - drag.share) * (drag.end - drag.start), drag.end - (share - drag.share) * (drag.end - drag.start));
      const text = this.describe(fetch, lane);
      this.cursor = null;
      return tip.show(text, event.clientX, event.clientY);
    });
    canvas.addEventListener("pointerdown", (event) => {
      drag = { share: at(event).share, start: this.start, end: this.end };
      canvas.setPointerCapture(event.pointerId);
      tip.hide();
    });
    canvas.addEventListener("pointerup", () => (drag = null));
    canvas.addEventListener("pointercancel", () => (drag = null));
    canvas.addEventListener("pointerleave", () => tip.hide());
    canvas.addEventListener("dblclick", (event) => this.zoom(0.25, at(event).share));
    canvas.addEventListener("wheel", (event) => {
      // Without a key held the wheel scrolls the page, sideways it moves the map.
      if (event.ctrlKey || event.shiftKey || event.metaKey) {
        event.preventDefault();
        this.zoom(event.deltaY > 0 ? 1.4 : 1 / 1.4, at(event).share);
      } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        event.preventDefault();
        this.move(event.deltaX / 800);
      }
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    const single = this.canvas.dataset.detail === "single";
    const step = single ? 1 : (this.end - this.start) / 50;
    const from = this.cursor ?? { fetch: (this.start + this.end) / 2, lane: 0 };
    const walk = (by, lanes) => {
      const fetch = Math.max(0, Math.min(this.lanes.map.fetches - 1, from.fetch + by));
      this.describe(fetch, Math.max(0, Math.min(this.lanes.lanes - 1, from.lane + lanes)));
      const span = this.end - this.start;
      if (fetch < this.start || fetch >= this.end) this.look(fetch - span / 2, fetch + span / 2);
      else this.draw();
    };
    const keys = {
      ArrowLeft: () => walk(-step, 0), ArrowRight: () => walk(step, 0), ArrowUp: () => walk(0, -1), ArrowDown: () => walk(0, 1),
      "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2), Home: () => this.look(0, this.lanes.map.fetches),
      PageUp: () => this.move(-0.8), PageDown: () => this.move(0.8), w: () => this.nextWindow(),
    };
    if (keys[event.key] && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      keys[event.key]();
    }
  }
}

function laneMap(program) {
  if (program.maps.length === 0) return null;
  const view = new LaneMapView(program);
  const redraw = () => view.canvas.isConnected && view.draw();
  addEventListener("resize", redraw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  return section("lanes", "Lane map", "Lanes from top to bottom, fetches from left to right. A lane is coloured while it is active, by what it runs; the paler, the more of its slots are lost. Ctrl or Shift and the wheel zoom, dragging moves, a double click goes in.", view.root);
}
