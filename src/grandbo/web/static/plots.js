// Draws each plot from the table that stands behind it, so that both say the same.
"use strict";

(() => {
  const colours = () => {
    const style = getComputedStyle(document.documentElement);
    return {
      ink: style.getPropertyValue("--ink").trim(),
      grid: style.getPropertyValue("--pico-muted-border-color").trim(),
      lines: ["--pico-primary", "--bad", "--warn", "--good", "--muted-ink"].map((name) => style.getPropertyValue(name).trim()),
    };
  };

  function draw(place) {
    const table = document.getElementById(place.dataset.plot);
    // Of another unit than the rest, and so for the table alone.
    const names = [...table.tHead.rows[0].cells].map((cell) => cell.textContent.trim()).filter((name) => name !== "answers");
    const rows = [...table.tBodies[0].rows];
    const labels = rows.map((row) => row.cells[0].textContent.trim());
    const numbers = names.slice(1).map((_, at) => rows.map((row) => Number(row.cells[at + 1].textContent.replace(/,/g, ""))));
    const { ink, grid, lines } = colours();
    const isBars = place.dataset.kind === "bars";
    const unit = place.dataset.unit;
    const axis = { stroke: ink, grid: { stroke: grid }, ticks: { stroke: grid } };
    place.replaceChildren();
    new uPlot(
      {
        width: place.clientWidth,
        height: 220,
        cursor: { show: false },
        legend: { show: names.length > 2, live: false },
        scales: { x: { time: false }, y: { range: (_plot, _low, high) => [0, high > 0 ? high * 1.1 : 1] } },
        series: [
          { label: names[0] },
          ...names.slice(1).map((label, at) => ({
            label,
            stroke: lines[at % lines.length],
            width: 2,
            dash: at ? [4 + 2 * at, 3] : undefined,
            fill: isBars ? lines[at % lines.length] : undefined,
            points: { show: rows.length < 40 },
            paths: isBars ? uPlot.paths.bars({ size: [0.6, 60] }) : undefined,
          })),
        ],
        axes: [
          { ...axis, values: (_plot, ticks) => ticks.map((tick) => (Number.isInteger(tick) ? labels[tick] ?? "" : "")), space: 80 },
          { ...axis, size: 55, label: unit, labelSize: 20, labelFont: "12px sans-serif", font: "12px sans-serif" },
        ],
      },
      [labels.map((_, at) => at), ...numbers],
      place,
    );
  }

  const all = () => document.querySelectorAll("[data-plot]").forEach(draw);
  all();
  let waiting;
  window.addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(all, 150);
  });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", all);
})();
