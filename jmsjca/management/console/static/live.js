// Shows the numbers of the server-sent events. Without scripts the page shows the numbers of its load.
"use strict";
const page = document.querySelector("[data-events]");
if (page) {
  const only = page.dataset.number;
  const source = new EventSource(page.dataset.events);
  source.onmessage = (event) => {
    for (const row of JSON.parse(event.data)) {
      if (only !== undefined && only !== String(row.number)) continue;
      for (const [name, value] of Object.entries(row.values)) {
        for (const cell of document.querySelectorAll(`[data-live="${row.number}.${name}"]`)) {
          if (cell.textContent !== value) cell.textContent = value;
        }
      }
      for (const [name, points] of Object.entries(row.plots)) {
        for (const line of document.querySelectorAll(`[data-plot="${row.number}.${name}"]`)) {
          line.setAttribute("points", points);
        }
      }
    }
  };
}
