"use strict";
// The page is complete without this: it sorts, filters, chooses and shows numbers.
const make = (name, properties) => Object.assign(document.createElement(name), properties);

document.querySelectorAll("table.sortable").forEach((table) => {
  const body = table.tBodies[0];
  const value = (row, column) => {
    const text = row.cells[column].textContent.trim();
    const number = parseFloat(text.replace("−", "-").replace("▲", ""));
    return Number.isNaN(number) ? text.toLowerCase() : number;
  };
  const compare = (a, b) => {
    if (typeof a === typeof b) return a < b ? -1 : a > b ? 1 : 0;
    return typeof a === "number" ? -1 : 1;
  };
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = make("button", { type: "button", title: "sort by this column" });
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      [...head.parentNode.cells].forEach((cell) => cell.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...body.rows];
      rows.sort((a, b) => compare(value(a, column), value(b, column)));
      if (down) rows.reverse();
      body.append(...rows);
    });
  });
  const tools = table.closest("details.table")?.querySelector(".tools");
  if (!tools) return;
  const filter = make("input", { type: "search", placeholder: "filter rows" });
  filter.setAttribute("aria-label", "filter rows");
  filter.addEventListener("input", () => {
    const words = filter.value.toLowerCase().split(/\s+/);
    [...body.rows].forEach((row) => {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    });
  });
  tools.prepend(filter);
});

// The diagrams of any method in place of those of the recommended one.
document.querySelectorAll(".splits").forEach((splits) => {
  const articles = [...splits.querySelectorAll("article")].map((article) => ({
    slot: article.querySelector(".slot"),
    before: article.querySelector(".panels.two > figure"),
    figures: new Map([...article.querySelectorAll(".slot figure, details figure")]
      .map((figure) => [figure.dataset.method, figure.cloneNode(true)])),
  })).filter((article) => article.slot);
  const labels = new Map();
  articles.forEach(({ figures }) => figures.forEach((figure, method) => {
    const label = figure.querySelector("figcaption").textContent;
    labels.set(method, label.replace(/^after /, ""));
  }));
  if (labels.size < 2) return;
  const select = make("select", {});
  labels.forEach((label, method) => select.append(new Option(label, method)));
  select.value = splits.dataset.after;
  const means = make("output", {});
  const mean = (values) => (values.reduce((a, b) => a + b, 0) / values.length).toFixed(1);
  const show = () => {
    const pairs = [];
    articles.forEach(({ slot, before, figures }) => {
      const figure = figures.get(select.value)?.cloneNode(true);
      const label = labels.get(select.value);
      if (!figure) {
        slot.replaceChildren(make("p", { className: "missing", textContent: `${label} did not run here.` }));
        return;
      }
      figure.querySelector("figcaption").textContent = `after ${label}`;
      slot.replaceChildren(figure);
      const pair = [before, figure].map((one) => parseFloat(one?.dataset.ece));
      if (pair.every(Number.isFinite)) pairs.push(pair);
    });
    const worse = pairs.filter(([before, after]) => after > before).length;
    means.textContent = pairs.length === 0 ? "" : `${labels.get(select.value)}: mean ECE ${mean(pairs.map((pair) => pair[0]))} % before, `
      + `${mean(pairs.map((pair) => pair[1]))} % after, higher in ${worse} of ${pairs.length}`;
  };
  select.addEventListener("change", show);
  const name = make("label", { textContent: "after: " });
  name.append(select);
  splits.parentNode.querySelector(".choose").append(name, means);
  show();
});

// The numbers of a bar, beside the pointer.
const tip = make("div", { className: "tip", hidden: true });
document.body.append(tip);
const showTip = (event) => {
  const panel = event.target.closest?.("svg.panel");
  const bins = panel?.dataset.bins ? panel.dataset.bins.split(" ").map((bin) => bin.split(":").map(Number)) : [];
  const point = panel && new DOMPoint(event.clientX, event.clientY).matrixTransform(panel.getScreenCTM().inverse());
  const found = bins.filter(([left]) => left <= point.x).pop();
  const width = bins.length > 1 ? Math.min(...bins.slice(1).map((bin, i) => bin[0] - bins[i][0])) : 100;
  tip.hidden = !found || point.x > found[0] + width;
  if (tip.hidden) return;
  const [, right, confidence, rows] = found;
  tip.textContent = `confidence ${confidence} %, right ${right} %, ${rows.toLocaleString("en")} row${rows === 1 ? "" : "s"}`;
  const space = document.documentElement.clientWidth - tip.offsetWidth - 8;
  tip.style.left = `${Math.max(8, Math.min(event.clientX + 12, space))}px`;
  tip.style.top = `${event.clientY + 16}px`;
};
document.addEventListener("pointermove", showTip);
document.addEventListener("pointerdown", showTip);

// On paper tables shrink to its width.
const PAPER = 680;
window.addEventListener("beforeprint", () => {
  document.querySelectorAll(".scroll > table").forEach((table) => {
    table.style.zoom = Math.min(1, PAPER / Math.max(table.offsetWidth, 1));
  });
});
window.addEventListener("afterprint", () => {
  document.querySelectorAll(".scroll > table").forEach((table) => { table.style.zoom = ""; });
});
