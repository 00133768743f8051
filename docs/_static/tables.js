// Each table of the class "filter" gets a box whose words choose its rows. A table whose columns have groups also gets a button
// for each group; the first column always stays.
const GROUPS = { pixels: "Pixels", gradients: "Gradients and batches", places: "Where it runs" };

function addFilter(table) {
  const tools = document.createElement("div");
  tools.className = "table-tools";
  const words = document.createElement("input");
  words.type = "search";
  words.placeholder = "Filter rows";
  words.setAttribute("aria-label", "Filter rows");
  words.addEventListener("input", () => filter(table, words.value.toLowerCase().split(/\s+/)));
  tools.append(words);
  const groups = Object.keys(GROUPS).filter((group) => table.querySelector(`th.${group}`));
  for (const group of groups) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = GROUPS[group];
    button.addEventListener("click", () => show(table, tools, button, group));
    tools.append(button);
  }
  (table.closest(".pst-scrollable-table-container") ?? table).before(tools);
  if (groups.length) tools.querySelector("button").click();
}

function show(table, tools, button, group) {
  table.dataset.shown = group;
  for (const other of tools.querySelectorAll("button")) other.setAttribute("aria-pressed", other === button);
}

function filter(table, words) {
  let family = null;
  for (const row of table.tBodies[0].rows) {
    if (row.classList.contains("family")) {
      family = row;
      family.hidden = true;
      continue;
    }
    const text = (row.textContent + (family?.textContent ?? "")).toLowerCase();
    row.hidden = !words.every((word) => text.includes(word));
    if (family && !row.hidden) family.hidden = false;
  }
}

document.addEventListener("DOMContentLoaded", () => document.querySelectorAll("table.filter").forEach(addFilter));
