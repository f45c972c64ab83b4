// What keeps a reader with a keyboard or a screen reader from a page, as sentences: things to use or look at without a
// name, roles and references that lead nowhere, headings that skip a level, tables and fields without labels, keys
// that go in another order than the eye. The rules' numbers are those of WCAG 2.1; contrast is in layout.js.
(() => {
  const faults = [];
  const of = (element) => element.outerHTML.replace(/\s+/g, " ").slice(0, 90);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const isThere = (element) => element.checkVisibility();
  const byIds = (ids) => ids.split(/\s+/).map((id) => document.getElementById(id)?.textContent ?? "").join(" ");
  const name = (element) => [
    element.getAttribute("aria-label"), byIds(element.getAttribute("aria-labelledby") ?? ""),
    [...(element.labels ?? [])].map((label) => label.textContent).join(" "), element.getAttribute("alt"),
    element.querySelector?.(":scope > title")?.textContent,
    /^(INPUT|SELECT|TEXTAREA|CANVAS|IMG)$/.test(element.tagName) || element instanceof SVGElement ? "" : element.textContent,
  ].filter((text) => text?.trim()).join(" ").trim();

  // 3.1.1, 2.4.2: language and title.
  if (!document.documentElement.lang) faults.push("the document has no language");
  if (!document.title.trim()) faults.push("the document has no title");
  // 4.1.1: ids are unique.
  const ids = all("[id]").map((element) => element.id);
  ids.filter((id, i) => ids.indexOf(id) !== i).forEach((id) => faults.push(`two elements have the id ${id}`));
  // 4.1.2, 1.1.1: what can be used or looked at has a name.
  const used = "a[href], button, select, input, textarea, summary, canvas, [role=img], [role=button], [tabindex], svg[role]";
  all(used).filter((element) => isThere(element) && element.id !== "main" && !name(element)).forEach((element) => faults.push(`no name: ${of(element)}`));
  all("svg:not([role]):not([aria-hidden])").filter((svg) => !svg.closest("[role=img], [aria-hidden=true], [role=group]")).forEach((svg) => faults.push(`a drawing without a role: ${of(svg)}`));
  // 1.3.1: headings go down one level at a time, from one first.
  const levels = all("h1, h2, h3, h4, h5, h6").filter(isThere).map((heading) => [Number(heading.tagName[1]), heading]);
  if (levels.filter(([level]) => level === 1).length !== 1) faults.push("there is not one heading of the first level");
  levels.forEach(([level, heading], i) => i > 0 && level > levels[i - 1][0] + 1 && faults.push(`a level is skipped before ${of(heading)}`));
  // 1.3.1: tables have heads that say what they head; lists have only items.
  all("table").filter((table) => isThere(table) && table.rows.length > 0 && !table.querySelector("th")).forEach((table) => faults.push(`no heads: ${of(table)}`));
  all("thead th").filter((head) => !head.scope).forEach((head) => faults.push(`heads nothing: ${of(head)}`));
  all("ul, ol").forEach((list) => [...list.children].filter((child) => child.tagName !== "LI").forEach((child) => faults.push(`no item of a list: ${of(child)}`)));
  // 1.3.1: what is referred to is there.
  for (const attribute of ["aria-labelledby", "aria-describedby", "aria-controls", "for"]) {
    for (const element of all(`[${attribute}]`)) {
      element.getAttribute(attribute).split(/\s+/).filter((id) => !document.getElementById(id)).forEach((id) => faults.push(`${attribute} leads nowhere (${id}): ${of(element)}`));
    }
  }
  all("a[href^='#']").filter((link) => !document.getElementById(decodeURIComponent(link.getAttribute("href").slice(1)))).forEach((link) => faults.push(`a link leads nowhere: ${of(link)}`));
  // 4.1.2: names are not given to what has no role; what is hidden from readers cannot be reached by keys.
  all("span[aria-label]:not([role]), div[aria-label]:not([role])").forEach((element) => faults.push(`a name without a role: ${of(element)}`));
  all("[aria-hidden=true] :is(a[href], button, input, select, [tabindex])").forEach((element) => faults.push(`hidden, but reached by keys: ${of(element)}`));
  all("[aria-pressed]").filter((element) => !/^(true|false)$/.test(element.getAttribute("aria-pressed"))).forEach((element) => faults.push(`neither pressed nor not: ${of(element)}`));
  // 2.4.3: the order of keys is that of the document. 2.1.1: what scrolls can be scrolled by keys.
  all("[tabindex]").filter((element) => element.tabIndex > 0).forEach((element) => faults.push(`out of order: ${of(element)}`));
  // 2.4.1: there is one main part, and a way past what comes before it.
  if (all("main").length !== 1 || !document.querySelector("a[href='#main']")) faults.push("no way to the main part");
  return faults;
})()
