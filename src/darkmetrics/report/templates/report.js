// Sliders: each position is a row of numbers that was computed beforehand, so that nothing here computes any.
"use strict";
for (const [name, grid] of Object.entries(JSON.parse(document.getElementById("report-data").textContent))) {
  const control = document.getElementById(name + "-control");
  const slider = document.getElementById(name + "-slider");
  const output = document.getElementById(name + "-output");
  const rows = document.querySelectorAll("#" + name + "-table tbody tr[data-row]");
  const cursors = document.querySelectorAll("#" + name + "-charts .cursor");
  const show = () => {
    const at = Number(slider.value);
    const text = grid.text[at] + ". " + grid.note[at];
    output.textContent = text.charAt(0).toUpperCase() + text.slice(1);
    slider.setAttribute("aria-valuetext", grid.text[at]);
    rows.forEach((row, i) => {
      row.querySelectorAll("td").forEach((cell, column) => {
        cell.textContent = grid.rows[i][column][at];
      });
    });
    for (const cursor of cursors) {
      cursor.setAttribute("x1", grid.cursor[at]);
      cursor.setAttribute("x2", grid.cursor[at]);
    }
  };
  slider.addEventListener("input", show);
  document.getElementById(name + "-reset").addEventListener("click", () => {
    slider.value = grid.start;
    show();
  });
  control.hidden = false;
  show();
}
