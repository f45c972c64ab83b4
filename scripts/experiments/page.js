// The table of figures. A click on a head sorts by its column, a second one the other way round, a third restores the
// order; a field filters rows.
const [table] = document.getElementsByTagName("table");
const [body] = table.tBodies;
const rows = [...body.rows];
const heads = [...table.tHead.rows[0].cells];
let [by, order] = [null, 0];

/** A cell's number, thousands and percent signs left out; what has none is less than all. */
const numberOf = (cell) => {
  const found = /-?[\d,]+(\.\d+)?/.exec(cell.textContent);
  return found ? Number(found[0].replaceAll(",", "")) : -Infinity;
};

heads.forEach((head, i) => {
  const isNumber = head.classList.contains("number");
  const first = isNumber ? -1 : 1;
  const button = document.createElement("button");
  button.type = "button";
  button.title = "Sort by this column";
  button.append(...head.childNodes);
  head.append(button);
  button.addEventListener("click", () => {
    order = by !== i || order === 0 ? first : order === first ? -first : 0;
    by = i;
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    if (order !== 0) head.setAttribute("aria-sort", order < 0 ? "descending" : "ascending");
    const compare = isNumber ? (a, b) => numberOf(a) - numberOf(b) || 0 : (a, b) => a.textContent.localeCompare(b.textContent, "en", { numeric: true });
    body.replaceChildren(...(order === 0 ? rows : [...rows].sort((a, b) => order * compare(a.cells[i], b.cells[i]))));
  });
});

const field = document.getElementById("filter");
const count = document.getElementById("count");
field.addEventListener("input", () => {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const row of rows) row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
  count.textContent = words.length === 0 ? "" : `${rows.filter((row) => !row.hidden).length} of ${rows.length} rows`;
});
