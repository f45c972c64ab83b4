// The lane map's data: bins of whole runs, coarser and coarser, and windows of single fetches.

const FUNCTION_COLOURS = ["#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7", "#f0e442", "#a05195", "#44aa99", "#999933", "#c0605c", "#8da0cb"];
const OTHER_COLOUR = "#8a8f98";

const functionColour = (index) => FUNCTION_COLOURS[index] ?? OTHER_COLOUR;

/** Lines have no order for colours to follow: neighbours in number get hues far apart, and three steps of lightness. */
const lineColour = (index) => `hsl(${(index * 137.508) % 360} 65% ${42 + (index % 3) * 12}%)`;

class LaneMap {
  constructor(program, map) {
    this.program = program;
    this.map = map;
    this.lanes = map.lanes.length;
    this.words = Math.max(1, Math.ceil(this.lanes / 32));
    // Decoded when they are first looked at.
    this.cells = map.levels.map(() => null);
    this.stretches = map.windows.map(() => null);
  }

  /** The level whose bins are as short as can still be drawn at so many fetches per pixel. */
  level(fetchesPerPixel) {
    const fits = this.map.levels.findIndex((level) => level.bin >= fetchesPerPixel / 2);
    const at = fits < 0 ? this.map.levels.length - 1 : fits;
    this.cells[at] ??= bytesOf(this.map.levels[at].cells);
    return { ...this.map.levels[at], bytes: this.cells[at] };
  }

  /** A bin of a lane. */
  cell(level, bin, lane) {
    const at = (bin * this.lanes + lane) * 4;
    const [share, fn, low, high] = level.bytes.subarray(at, at + 4);
    return { share: share / 255, fn, pc: low | (high << 8) };
  }

  /** The stretches of a window: {start, count, pc, at}, where `at` is where the mask stands. */
  window(index) {
    if (this.stretches[index] === null) {
      const bytes = bytesOf(this.map.windows[index].stretches);
      const words = new Uint32Array(bytes.buffer, 0, bytes.length >> 2);
      const size = 2 + this.words;
      const list = [];
      let start = this.map.windows[index].start;
      for (let at = 0; at < words.length; at += size) {
        list.push({ start, pc: words[at], count: words[at + 1], mask: words.subarray(at + 2, at + size) });
        start += words[at + 1];
      }
      this.stretches[index] = list;
    }
    return this.stretches[index];
  }

  /** The single fetch of this number, where it was kept. */
  single(number) {
    const index = this.map.windows.findIndex((w) => w.start <= number && number < w.start + w.fetches);
    if (index < 0) return null;
    const stretches = this.window(index);
    let [low, high] = [0, stretches.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (stretches[middle].start <= number) low = middle;
      else high = middle - 1;
    }
    const found = stretches[low];
    return { number, pc: found.pc + (number - found.start), mask: found.mask, window: this.map.windows[index] };
  }

  isActive(mask, lane) {
    return (mask[lane >> 5] >>> (lane & 31)) & 1;
  }

  activeCount(mask) {
    let count = 0;
    for (let lane = 0; lane < this.lanes; lane++) count += this.isActive(mask, lane);
    return count;
  }

  /** The mask with lane 0 at the left, in groups of eight. */
  maskText(mask) {
    let text = "";
    for (let lane = 0; lane < this.lanes; lane++) text += (lane > 0 && lane % 8 === 0 ? " " : "") + (this.isActive(mask, lane) ? "1" : "·");
    return text;
  }

  /** `function+0x12, fft.c:76` */
  place(pc) {
    const { pcs, functions, lines } = this.program;
    if (pc >= pcs.line.length) return "(an instruction that is not listed)";
    const line = lines[pcs.line[pc]];
    const offset = `${functions[pcs.function[pc]].name}+0x${pcs.offset[pc].toString(16)}`;
    return line.file === null ? offset : `${offset}, ${line.label}`;
  }

  /** The text of a source line, where it is on the page. */
  sourceText(pc) {
    const line = this.program.lines[this.program.pcs.line[pc]];
    if (!line || line.file === null) return "";
    const piece = this.program.files[line.file].pieces.find((p) => p.first <= line.number && line.number < p.first + p.text.length);
    return piece ? piece.text[line.number - piece.first].trim() : "";
  }

  colour(pc, fn, byLine) {
    if (byLine) return pc < this.program.pcs.line.length ? lineColour(this.program.pcs.line[pc]) : OTHER_COLOUR;
    return functionColour(fn);
  }
}
