// Elements, numbers and words: what every part of the page is made of.

const page = JSON.parse(document.getElementById("data").textContent);

/** An element: el("p", {class: "x", onclick: f}, "text", child …). Text is always text, never markup. */
function el(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** The same for SVG. */
function svg(name, attributes, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function fill(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "style") element.style.cssText = value;
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat(9).filter((c) => c !== null && c !== undefined && c !== false));
  return element;
}

const numbers = new Intl.NumberFormat("en-US");

/** 1,234,567 */
const grouped = (n) => numbers.format(n);

/** 1.23 M */
function short(n) {
  for (const [least, unit] of [[1e12, " T"], [1e9, " G"], [1e6, " M"], [1e4, " k"]]) {
    if (n >= least) {
      const scaled = n / (unit === " k" ? 1e3 : least);
      return `${scaled >= 100 ? scaled.toFixed(0) : scaled.toPrecision(3)}${unit}`;
    }
  }
  return String(Math.round(n * 100) / 100);
}

/** 86.6%; what is not nothing never shows as 0.0%. */
function percent(share) {
  if (share === null || share === undefined || Number.isNaN(share)) return "–";
  if (share > 0 && share < 0.0005) return "<0.1%";
  if (share < 1 && share > 0.9995) return ">99.9%";
  return `${(share * 100).toFixed(1)}%`;
}

const sum = (list) => list.reduce((a, b) => a + b, 0);

/** The heuristic's own colour, the same on every chart. */
function modelColour(heuristic) {
  const name = heuristic.split(":")[0];
  return page.colours.find(([known]) => known === name)?.[1] ?? "#555555";
}

/** The command without the program's folders; the trace's name where there is no command. */
function commandOf(program) {
  const [name, ...rest] = (program.replayed.command || program.replayed.trace).split(" ");
  return [name.split("/").pop(), ...rest].join(" ");
}

/** A swatch with its name. */
const swatch = (colour) => el("span", { class: "swatch", style: `background:${colour}`, "aria-hidden": "true" });

/** A bar cut by cause, as wide as `total` is long. */
function causesBar(byCause, total, label) {
  const parts = page.causes
    .map((cause, i) => [cause, byCause[i]])
    .filter(([, slots]) => slots > 0)
    .map(([cause, slots]) =>
      el("span", { style: `width:${(slots / total) * 100}%;background:${cause.colour}`, title: `${cause.name}: ${grouped(slots)} (${percent(slots / total)})` }));
  return el("div", { class: "causes-bar", role: "img", "aria-label": label }, parts);
}

/** The main causes in words: "branch 71%, barrier 20%". */
function causesText(byCause, most = 3) {
  const total = sum(byCause);
  if (total === 0) return "nothing";
  return page.causes
    .map((cause, i) => [cause.name, byCause[i] / total])
    .filter(([, share]) => share >= 0.05)
    .sort((a, b) => b[1] - a[1])
    .slice(0, most)
    .map(([name, share]) => `${name} ${Math.round(share * 100)}%`)
    .join(", ");
}

/** The cause that most is lost to: its colour. */
function mainColour(byCause) {
  const at = byCause.indexOf(Math.max(...byCause));
  return sum(byCause) === 0 ? "transparent" : page.causes[at].colour;
}

/** A section with its heading and a sentence on what it shows. */
function section(id, title, about, ...children) {
  return el("section", { id, "aria-labelledby": `${id}-title` }, el("h2", { id: `${id}-title` }, title), about && el("p", { class: "faint" }, about), children);
}

/** A table; columns are [title, isNumber]. */
function table(caption, columns, rows, attributes) {
  const head = columns.map(([title, number]) => el("th", { scope: "col", class: number ? "number" : null }, title));
  return el("div", { class: "scrolls" }, el("table", attributes, caption && el("caption", {}, caption), el("thead", {}, el("tr", {}, head)), el("tbody", {}, rows)));
}

const td = (...children) => el("td", {}, ...children);
const number = (...children) => el("td", { class: "number" }, ...children);

/** The id of a source line's row. */
const lineId = (index) => `line-${index}`;

/** A link to a source line. */
function lineLink(program, index, text) {
  return el("a", { href: `#${lineId(index)}` }, text ?? program.lines[index].label);
}

const tip = {
  show(text, x, y) {
    const box = document.getElementById("tip");
    box.textContent = text;
    box.hidden = false;
    const { width, height } = box.getBoundingClientRect();
    box.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - width - 8))}px`;
    box.style.top = `${y + 18 + height > innerHeight ? y - height - 10 : y + 18}px`;
  },
  hide() {
    document.getElementById("tip").hidden = true;
  },
};

function bytesOf(base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}
