// What is wrong with how a page is laid out, as sentences: wider than its window, text over text, text cut off, names
// broken letter by letter, text too faint on its ground.
(() => {
  const faults = [];
  const said = (text) => JSON.stringify(text.trim().replace(/\s+/g, " ").slice(0, 50));
  const root = document.documentElement;
  if (root.scrollWidth > innerWidth) faults.push(`the page is ${root.scrollWidth} wide in a window of ${innerWidth}`);
  const overlap = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left);
  const meet = (a, b) => ({ left: Math.max(a.left, b.left), right: Math.min(a.right, b.right), top: Math.max(a.top, b.top), bottom: Math.min(a.bottom, b.bottom) });

  /** What an element's ancestors leave to be seen of it without a bar to scroll with; and of it with all of them. */
  const windows = (element) => {
    const all = { left: -1e9, right: 1e9, top: -1e9, bottom: 1e9 };
    let [cut, seen, excused] = [all, all, false];
    for (let at = element; at && at !== document.body && at !== root; at = at.parentElement) {
      const style = getComputedStyle(at);
      if (at.title || at.querySelector?.(":scope > title")) excused ||= style.textOverflow === "ellipsis";
      const [x, y] = [style.overflowX, style.overflowY];
      if (at instanceof SVGElement && at.tagName !== "svg") continue;
      if (x === "visible" && y === "visible") continue;
      const box = at.getBoundingClientRect();
      seen = meet(seen, box);
      // What is scrolled is seen by scrolling; what stands in it is cut off by nothing further out.
      if (x === "auto" || x === "scroll" || y === "auto" || y === "scroll") return { cut, seen, excused };
      if (!(style.textOverflow === "ellipsis" && at.closest("[title]"))) cut = meet(cut, box);
    }
    return { cut, seen, excused };
  };

  const texts = [];
  const walk = document.createTreeWalker(document.body ?? root, NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {
    const element = node.parentElement;
    if (node.textContent.trim() === "" || /^(SCRIPT|STYLE|NOSCRIPT|TITLE|OPTION|title|style|desc)$/.test(element.tagName)) continue;
    if (element.closest(".sr, .skip, #tip") || !element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const { cut, seen, excused } = windows(element);
    const lines = [...range.getClientRects()].filter((r) => r.width > 0.5 && r.height > 0.5);
    if (lines.length === 0) continue;
    for (const line of lines) {
      const shown = meet(line, seen);
      // Ascent and descent are more than letters need.
      const slack = line.height * 0.2;
      if (!excused && (line.left < cut.left - 1.5 || line.right > cut.right + 1.5 || line.top + slack < cut.top || line.bottom - slack > cut.bottom)) {
        faults.push(`${said(node.textContent)} is cut off`);
      }
      if (shown.right - shown.left > 1 && shown.bottom - shown.top > 1) texts.push({ node, element, box: { ...shown, top: shown.top + slack, bottom: shown.bottom - slack } });
    }
    const tops = new Set(lines.map((l) => Math.round(l.top)));
    const length = node.textContent.trim().length;
    if (tops.size > 2 && length / tops.size < 4) faults.push(`${said(node.textContent)} is broken into ${tops.size} lines`);
    if (root.tagName === "svg") {
      const page = root.getBoundingClientRect();
      if (lines.some((l) => l.left < page.left - 0.5 || l.right > page.right + 0.5 || l.bottom > page.bottom + 0.5)) faults.push(`${said(node.textContent)} reaches out of the picture`);
    }
  }
  texts.sort((a, b) => a.box.top - b.box.top);
  texts.forEach((one, i) => {
    for (let j = i + 1; j < texts.length && texts[j].box.top < one.box.bottom - 0.5; j++) {
      const other = texts[j];
      if (other.node !== one.node && overlap(one.box, other.box) > 1 && !one.element.closest("#contents") && !other.element.closest("#contents")) {
        faults.push(`${said(one.node.textContent)} and ${said(other.node.textContent)} overlap`);
      }
    }
  });

  /** A colour as red, green, blue and how much of it there is, 0 to 1 each. */
  const channels = (text) => {
    const numbers = (text.match(/-?[\d.]+(e-?\d+)?/g) ?? []).map(Number);
    const scale = text.startsWith("color(") ? 1 : 255;
    return [...numbers.slice(0, 3).map((n) => n / scale), numbers[3] ?? 1];
  };
  const paper = getComputedStyle(root).colorScheme.includes("dark") && matchMedia("(prefers-color-scheme: dark)").matches ? [0.07, 0.07, 0.07] : [1, 1, 1];
  const over = (above, below) => [0, 1, 2].map((i) => above[i] * above[3] + below[i] * (1 - above[3]));
  const ground = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) {
      const style = getComputedStyle(at);
      if (style.backgroundImage !== "none") return null;
      const colour = channels(style.backgroundColor);
      if (colour[3] > 0) layers.push(colour);
      if (colour[3] === 1) break;
    }
    return layers.reduceRight((below, layer) => over(layer, below), paper);
  };
  const light = (colour) => colour.map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)).reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  if (document.body) {
    for (const element of new Set(texts.map((t) => t.element))) {
      if (element.closest("svg, button:disabled")) continue;
      const below = ground(element);
      if (!below) continue;
      const [a, b] = [light(over(channels(getComputedStyle(element).color), below)), light(below)];
      const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
      // The least for text of common size (WCAG 2.1, 1.4.3).
      if (contrast < 4.5) faults.push(`${said(element.textContent)} has a contrast of ${contrast.toFixed(2)}`);
    }
  }
  return [...new Set(faults)];
})()
