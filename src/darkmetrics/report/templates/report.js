// Everything shown here was computed beforehand and is looked up: sliders, values under the pointer, pictures to save.
"use strict";
const data = JSON.parse(document.getElementById("report-data").textContent);

for (const [name, grid] of Object.entries(data.sliders)) {
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

// Values under the pointer: the nearest place of the picture, in words above it.
const added = (picture, tag, attributes) => {
  const element = document.createElementNS(picture.namespaceURI, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  picture.append(element);
  return element;
};
const places = (picture) => {
  const grid = data.sliders[picture.dataset.slider];
  if (!grid) return data.hover[picture.id];
  const [estimate, interval] = grid.rows[picture.dataset.line];
  return { at: grid.cursor, text: grid.short.map((text, i) => text + ": " + estimate[i] + " (" + interval[i] + ")") };
};
for (const picture of document.querySelectorAll("figure svg[role=img]")) {
  const found = places(picture);
  if (!found || !found.at.length) continue;
  const line = added(picture, "line", { class: "pointer", y1: 12, y2: 158, visibility: "hidden" });
  const words = added(picture, "text", { class: "readout", x: 348, y: 9 });
  picture.addEventListener("pointermove", (event) => {
    const box = picture.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * picture.viewBox.baseVal.width;
    let nearest = 0;
    found.at.forEach((place, i) => {
      if (Math.abs(place - x) < Math.abs(found.at[nearest] - x)) nearest = i;
    });
    line.setAttribute("x1", found.at[nearest]);
    line.setAttribute("x2", found.at[nearest]);
    line.setAttribute("visibility", "visible");
    words.textContent = found.text[nearest];
  });
  picture.addEventListener("pointerleave", () => {
    line.setAttribute("visibility", "hidden");
    words.textContent = "";
  });
}

// Pictures to save: drawn again with the colours that are seen, three times as large, under their heading.
const LOOKS = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "opacity", "font-size", "text-anchor"];
const save = (picture, heading) => {
  const copy = picture.cloneNode(true);
  const inside = copy.querySelectorAll("*");
  picture.querySelectorAll("*").forEach((element, i) => {
    const look = getComputedStyle(element);
    for (const name of LOOKS) inside[i].setAttribute(name, look.getPropertyValue(name));
  });
  const { width, height } = picture.viewBox.baseVal;
  const page = getComputedStyle(document.body);
  copy.setAttribute("viewBox", "0 -24 " + width + " " + (height + 24));
  copy.setAttribute("width", 3 * width);
  copy.setAttribute("height", 3 * (height + 24));
  copy.setAttribute("font-family", page.fontFamily);
  const title = added(copy, "text", { x: 10, y: -8, fill: page.color, "font-size": 13, "font-weight": 600 });
  title.textContent = heading;
  const paper = added(copy, "rect", { x: 0, y: -24, width, height: height + 24, fill: page.backgroundColor });
  copy.prepend(paper);
  const image = new Image();
  image.onload = () => {
    const canvas = document.createElement("canvas");
    canvas.width = 3 * width;
    canvas.height = 3 * (height + 24);
    canvas.getContext("2d").drawImage(image, 0, 0);
    const link = document.createElement("a");
    link.href = canvas.toDataURL("image/png");
    link.download = picture.id + ".png";
    link.click();
  };
  image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(new XMLSerializer().serializeToString(copy));
};
for (const figure of document.querySelectorAll("figure")) {
  const picture = figure.querySelector("svg[role=img]");
  if (!picture) continue;
  const heading = figure.querySelector("h3").textContent;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "save";
  button.textContent = "PNG";
  button.setAttribute("aria-label", "Save the picture of " + heading + " as PNG");
  button.addEventListener("click", () => save(picture, heading));
  figure.append(button);
}
