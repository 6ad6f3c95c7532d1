// The only ways by which anything gets into the page.

/** An element; attributes by name, `text` and children as text only. */
function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  fill(made, attributes);
  made.append(...children.flat().filter((each) => each !== null && each !== undefined && each !== false));
  return made;
}

function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  fill(made, attributes);
  made.append(...children);
  return made;
}

function fill(made, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "text") made.textContent = visible(String(value));
    else if (name === "press") made.addEventListener("click", value);
    else made.setAttribute(name, value === true ? "" : String(value));
  }
}

const TEXT_SHOWN = 6000;

/** Somebody's words. A very long text is shown from its beginning, all of it on demand. */
function quote(text, label = "") {
  const words = el("p", { class: "words", dir: "auto", text: text.slice(0, TEXT_SHOWN) });
  const box = el("div", { class: "quote" }, label && el("span", { class: "who", text: label }), words);
  if (text.length > TEXT_SHOWN) {
    const rest = el("button", { type: "button", class: "quiet", text: `Show all ${count(characters(text), "character")}` });
    rest.addEventListener("click", () => { words.textContent = visible(text); rest.remove(); });
    box.append(rest);
  }
  return box;
}

/** A link to a position. */
function jump(position, text, extra = "") {
  return el("button", { type: "button", class: `jump ${extra}`, text, press: () => select(stepAt(page.thread, position)) });
}
