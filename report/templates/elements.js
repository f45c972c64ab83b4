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
    if (key === "aria-pressed") element.setAttribute(key, String(Boolean(value)));
    else if (value === null || value === undefined || value === false) continue;
    else if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
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

/** What is known about a heuristic, by its name in results. */
const modelOf = (heuristic) => page.models.find((m) => m.heuristic === heuristic) ?? { heuristic, brief: heuristic, family: page.families.length - 1, colour: "#555555", rule: "" };

/** The heuristic's own colour, a shade of its family's, the same on every chart. */
const modelColour = (heuristic) => modelOf(heuristic).colour;

/** Text that may be broken where a name's parts end. */
function breakable(text) {
  // Short parts stay whole: not even at a hyphen are they broken.
  const whole = (part) => (part.includes("-") && part.length < 20 ? el("span", { class: "whole" }, part) : part);
  return text.split(/(?<=[:,/_.\s·(]|::)(?=[^:,/.\s])/).flatMap((part, i) => (i === 0 ? [whole(part)] : [el("wbr"), whole(part)]));
}

/** A heuristic's name, with the parameters not at their defaults; when pointed at, all parameters and its rule. */
function modelName(heuristic, mark) {
  const model = modelOf(heuristic);
  return el("span", { class: "name", title: `${model.heuristic}\n${model.rule}` }, breakable(model.brief), mark);
}

/** What stands between the brackets that begin at `from`, and where they end; null where they do not. */
function bracketed(text, from, open, close) {
  let depth = 0;
  for (let at = from; at < text.length; at++) {
    if (text[at] === open) depth += 1;
    else if (text[at] === close && text[at - 1] !== "-" && --depth === 0) return { inner: text.slice(from + 1, at), end: at + 1 };
  }
  return null;
}

/** A path without its template arguments and without all but its last parts: `Iterator::for_each`. */
function lastParts(path, most) {
  let plain = "";
  for (let at = 0; at < path.length; at++) {
    const isName = path[at] === "<" && !/operator<*$/.test(plain);
    const arguments_ = isName ? bracketed(path, at, "<", ">") : null;
    if (arguments_ && at === 0 && path[arguments_.end] === ":") {
      // Rust: <Type as Trait>::method is a method of the type.
      plain += lastParts(arguments_.inner.split(" as ")[0], 1);
      at = arguments_.end - 1;
    } else if (arguments_) {
      plain = plain.replace(/::$/, "");
      at = arguments_.end - 1;
    } else plain += path[at];
  }
  return plain.split("::").filter((part) => part !== "").slice(-most).join("::");
}

/** A long name shortened: for a function the innermost names, without templates and parameters; else the two ends. */
function shortName(text, most = 44) {
  if (text.length <= most) return text;
  const [, name, offset] = /^(.*?)(\+0x[0-9a-f]+)?$/s.exec(text);
  let found = name;
  if (/::|</.test(name)) {
    const callee = name.replace("(anonymous namespace)", "(anonymous)");
    // What stands behind the name: its parameters, `const`, and the like.
    let end = callee.length;
    for (let at = 1; at < callee.length; at++) {
      if (callee[at] === "<" && !/operator<*$/.test(callee.slice(0, at))) at = (bracketed(callee, at, "<", ">")?.end ?? at + 1) - 1;
      else if (callee[at] === "(" && !/operator$/.test(callee.slice(0, at)) && !callee.startsWith("(anonymous)", at)) { end = at; break; }
    }
    const bare = callee.slice(0, end).replace(/^[\w:*& ]+ (?=[\w:]+(<|::|$))/, "");
    found = lastParts(bare, 2) || name;
  }
  found += offset ?? "";
  if (found.length <= most) return found;
  const front = Math.ceil((most - 1) / 2);
  return `${found.slice(0, front)}…${found.slice(found.length - (most - 1 - front))}`;
}

/** A name, shortened where it is long; all of it when pointed at. */
function named(text, most = 44) {
  const short = shortName(text, most);
  return el("span", { class: "name", title: short === text ? null : text }, breakable(short));
}

/** Text in which what stands between backquotes is code. */
/** What can be typed as it stands. */
const isCommand = (text) => /^(replay|trace|lockstep) \S/.test(text) && !/[A-Z]{4}|\.\.\./.test(text);

/** A command with a button that copies it. */
function command(text) {
  const button = el("button", { type: "button", class: "copy", "aria-label": `Copy ${text}`, onclick: async () => {
    await copy(text);
    button.textContent = "copied";
    setTimeout(() => (button.textContent = "copy"), 1500);
  } }, "copy");
  return [el("code", { class: "command" }, text), " ", button];
}

/** Pages of files have no clipboard of their own in all browsers. */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const field = el("textarea", { class: "sr" }, text);
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
}

/** A text in which code stands in backticks, and commands there or in parentheses. */
const prose = (text) => text.split(/`([^`]+)`|(?<=\()((?:replay|trace|lockstep) --?[^()]+)(?=\))/)
  .map((part, i) => (i % 3 === 0 || part === undefined ? part : isCommand(part) ? command(part) : i % 3 === 1 ? el("code", {}, part) : part));

const sentenceCase = (text) => (/^[a-z]+[ ,:;]/.test(text) ? text[0].toUpperCase() + text.slice(1) : text);

/** A sentence as it stands by itself: with a capital, and arrows that are one character. */
const sentence = (text) => prose(sentenceCase(text.replaceAll(" -> ", " → ")));

/** The command without the program's folders; the trace's name where there is no command. */
function commandOf(program) {
  const [name, ...rest] = (program.replayed.command || program.replayed.trace).split(" ");
  return [name.split("/").pop(), ...rest].join(" ");
}

/**
 * Names that tell two programs apart: commands, or else the folders or the traces that differ. In long ones, the part
 * that differs is not cut off.
 */
function namesApart(programs, most = 90) {
  let names = programs.map(commandOf);
  if (names.length === 2) {
    const equal = () => names[0] === names[1];
    if (equal()) names = programs.map((p) => p.replayed.command || p.replayed.trace);
    if (equal()) names = programs.map((p, i) => `${commandOf(p)} (${p.replayed.trace})`);
    if (equal()) names = names.map((name, i) => `${name}, ${["before", "after"][i]}`);
    const apart = [...names[0]].findIndex((c, i) => c !== names[1][i]);
    const from = (apart < 0 ? Math.min(...names.map((n) => n.length)) : apart) - 20;
    if (Math.max(...names.map((n) => n.length)) > most && from > 0) names = names.map((name) => `…${name.slice(from)}`);
  }
  return names.map((name) => shortName(name, most));
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
  return el("section", { id, "aria-labelledby": `${id}-title` },
    el("div", { class: "head" }, el("h2", { id: `${id}-title` }, title), el("a", { class: "anchor", href: `#${id}`, "aria-label": `Link to ${title}` }, "#")), about && el("p", { class: "faint" }, about), children);
}

/** How many rows a table must have before it can be filtered. */
const FEW_ROWS = 8;

/**
 * A table that can be sorted by its columns and, if it is long, filtered. Columns are [title, isNumber]; rows are rows
 * or bodies of rows.
 */
function table(caption, columns, rows, attributes) {
  const head = columns.map(([title, number]) => el("th", { scope: "col", class: number ? "number" : null }, title));
  const bodies = rows[0]?.tagName === "TBODY" ? rows : [el("tbody", {}, rows)];
  const whole = el("table", attributes, caption && el("caption", {}, caption), el("thead", {}, el("tr", {}, head)), bodies);
  return el("div", { class: "table" }, sortable(whole, "Filter rows"), el("div", { class: "scrolls" }, whole));
}

/** What a cell is sorted by: its number, or its words. */
function sortKey(cell, isNumber) {
  if (!cell) return isNumber ? -Infinity : "";
  const text = cell.dataset.value ?? cell.textContent.trim();
  if (!isNumber) return text.toLowerCase();
  const found = /[−-]?[\d.,]+/.exec(text);
  const sign = text.includes("−") || text.startsWith("-") ? -1 : 1;
  const size = found ? Number(found[0].replace(/[−,-]/g, "")) : NaN;
  return Number.isNaN(size) ? -Infinity : sign * (text.startsWith("<") ? size / 2 : size);
}

/**
 * Turns a table's heads into buttons that sort it: first numbers from the largest, or words in their order; then the
 * other way round; then as it was. Returns the field that filters its rows, if it has many.
 */
function sortable(whole, label) {
  const bodies = [...whole.tBodies];
  const places = bodies.map((body) => [...body.rows]);
  const rows = places.flat().filter((row) => !row.classList.contains("heading") && !row.classList.contains("gap"));
  if (rows.length < 2) return null;
  const heads = [...whole.tHead.rows[0].cells];
  let [by, order] = [null, 0];
  const arrange = () => {
    heads.forEach((head, i) => (i === by && order !== 0 ? head.setAttribute("aria-sort", order < 0 ? "descending" : "ascending") : head.removeAttribute("aria-sort")));
    bodies.forEach((body, i) => body.replaceChildren(...(order === 0 ? places[i] : [])));
    if (order === 0) return;
    const isNumber = heads[by].classList.contains("number");
    const keyed = rows.filter((row) => row.cells.length > by && !row.classList.contains("plain")).map((row) => [sortKey(row.cells[by], isNumber), row]);
    keyed.sort(([a], [b]) => order * (isNumber ? a - b || 0 : a.localeCompare(b)));
    bodies[0].replaceChildren(...keyed.map(([, row]) => row));
  };
  heads.forEach((head, i) => {
    if (head.textContent.trim() === "") return;
    const first = head.classList.contains("number") ? -1 : 1;
    head.replaceChildren(el("button", { type: "button", class: "sort", title: "Sort by this column", onclick: () => {
      order = by !== i || order === 0 ? first : order === first ? -first : 0;
      by = i;
      arrange();
    } }, ...head.childNodes));
  });
  if (rows.length < FEW_ROWS) return null;
  const count = el("span", { class: "note", role: "status" });
  const field = el("input", { type: "search", placeholder: label, "aria-label": label, oninput: () => {
    const wanted = field.value.trim().toLowerCase();
    const shown = rows.filter((row) => {
      row.hidden = wanted !== "" && !`${row.textContent} ${row.dataset.line ?? row.dataset.heuristic ?? ""}`.toLowerCase().includes(wanted);
      return !row.hidden;
    });
    places.flat().filter((row) => !rows.includes(row)).forEach((row) => (row.hidden = wanted !== ""));
    count.textContent = wanted === "" ? "" : `${shown.length} of ${rows.length} rows`;
  } });
  return el("div", { class: "filter" }, field, count);
}

const td = (...children) => el("td", {}, ...children);
const number = (...children) => el("td", { class: "number" }, ...children);

/** The id of a source line's row. */
const lineId = (index) => `line-${index}`;

/** A link to a source line. */
function lineLink(program, index, text) {
  return el("a", { href: `#${lineId(index)}` }, text ?? named(program.lines[index].label));
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
