// What a script in the page can see of its faults. It is one expression, whose
// value the kit keeps as window.audit; each look returns a list of faults.
(() => {
"use strict";

const fault = (rule, at, what) => ({ rule, where: typeof at === "string" ? at : place(at), what });

// place names an element so that a person finds it.
function place(el) {
  const parts = [];
  for (let e = el; e && e.nodeType === Node.ELEMENT_NODE && parts.length < 4; e = e.parentElement) {
    let name = e.localName;
    if (e.id) name += "#" + e.id;
    else if (e.classList.length) name += "." + [...e.classList].join(".");
    parts.unshift(name);
    if (e.id) break;
  }
  const text = (el.getAttribute("aria-label") || el.textContent || "").trim().replace(/\s+/g, " ");
  return parts.join(" > ") + (text ? ` "${text.slice(0, 50)}"` : "");
}

const style = el => getComputedStyle(el);
const seen = el => el.checkVisibility({ opacityProperty: true, visibilityProperty: true, contentVisibilityAuto: true }) && el.getClientRects().length > 0;

// ---- Colours ----

const brush = (() => {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 1;
  return canvas.getContext("2d", { willReadFrequently: true });
})();
const known = new Map();

// rgba is a computed colour as red, green, blue from 0 to 255 and alpha from 0 to 1.
function rgba(text) {
  let c = known.get(text);
  if (c) return c;
  const m = /^rgba?\(([\d.]+), ([\d.]+), ([\d.]+)(?:, ([\d.]+))?\)$/.exec(text);
  if (m) {
    c = [+m[1], +m[2], +m[3], m[4] === undefined ? 1 : +m[4]];
  } else { // color(), oklch() and the like: what the brush paints
    brush.clearRect(0, 0, 1, 1);
    brush.fillStyle = "#000";
    brush.fillStyle = text;
    brush.fillRect(0, 0, 1, 1);
    const d = brush.getImageData(0, 0, 1, 1).data;
    c = [d[0], d[1], d[2], d[3] / 255];
  }
  known.set(text, c);
  return c;
}

const faded = (c, by) => [c[0], c[1], c[2], c[3] * by];
const over = (top, under) => [0, 1, 2].map(i => top[i] * top[3] + under[i] * (1 - top[3])).concat(1);

function luminance(c) {
  const [r, g, b] = c.map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrastOf(a, b) {
  const [x, y] = [luminance(a), luminance(b)].sort((p, q) => q - p);
  return (x + 0.05) / (y + 0.05);
}

const hex = c => "#" + c.slice(0, 3).map(v => Math.round(v).toString(16).padStart(2, "0")).join("");

// canvasColour is what stands behind a page that paints nothing.
function canvasColour() {
  const probe = document.createElement("div");
  probe.style.backgroundColor = "Canvas";
  document.body.append(probe);
  const c = rgba(style(probe).backgroundColor);
  probe.remove();
  return c;
}

// backdrop is the colour behind what the element shows, or why it is unknown.
function backdrop(el, behind) {
  const kept = behind.get(el);
  if (kept) return kept;
  const parent = el.parentElement;
  const below = parent ? backdrop(parent, behind) : { colour: canvasColour() };
  let mine = below;
  if (!below.unknown) {
    const s = style(el);
    if (s.backgroundImage !== "none") mine = { unknown: "a picture or gradient stands behind it" };
    else if (s.filter !== "none" || s.mixBlendMode !== "normal" || s.backdropFilter !== "none") mine = { unknown: "a filter or blend changes its colours" };
    else if (!(el instanceof SVGElement) || el.localName === "svg") mine = { colour: over(rgba(s.backgroundColor), below.colour) };
  }
  behind.set(el, mine);
  return mine;
}

const shapes = "path, rect, circle, ellipse, line, polyline, polygon";

// filled are the shapes of a drawing that cover an area, in the order in which they
// are painted; to ask for the style of each beside every label would take most of the time.
function filled(svg, kept) {
  let list = kept.get(svg);
  if (!list) {
    list = [...svg.querySelectorAll(shapes)].map(shape => ({ shape, paint: style(shape) })).filter(s => s.paint.fill !== "none" && seen(s.shape));
    kept.set(svg, list);
  }
  return list;
}

// painted are the colours behind an SVG text at its middle and near its ends:
// shapes that were drawn before it may lie under it.
function painted(text, under, kept) {
  const s = style(text);
  if (s.stroke !== "none" && parseFloat(s.strokeWidth) >= 2 && s.paintOrder.startsWith("stroke")) {
    return [over(rgba(s.stroke), under)]; // a halo
  }
  const box = text.getBoundingClientRect();
  const points = [0.1, 0.5, 0.9].map(x => [box.left + box.width * x, box.top + box.height / 2]);
  const colours = points.map(() => under);
  for (const { shape, paint } of filled(text.ownerSVGElement || text, kept)) {
    if (!(shape.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING)) break;
    const matrix = shape.getScreenCTM();
    if (!matrix) continue;
    points.forEach(([x, y], i) => {
      const at = new DOMPoint(x, y).matrixTransform(matrix.inverse());
      if (!shape.isPointInFill(at)) return;
      colours[i] = paint.fill.startsWith("url") ? null : over(faded(rgba(paint.fill), paint.fillOpacity * paint.opacity), colours[i] || under);
    });
  }
  return colours;
}

function opacityOf(el, kept) {
  if (!el) return 1;
  let o = kept.get(el);
  if (o === undefined) {
    o = style(el).opacity * opacityOf(el.parentElement, kept);
    kept.set(el, o);
  }
  return o;
}

function contrast() {
  const faults = [];
  const behind = new Map(), kept = new Map(), said = new Set();
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const opaque = new Map();
  const range = document.createRange();
  let texts = 0;
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {
    const el = node.parentElement;
    if (!node.data.trim() || !el || ["SCRIPT", "STYLE", "TITLE"].includes(el.tagName) || !seen(el)) continue;
    range.selectNodeContents(node);
    if (![...range.getClientRects()].some(r => r.width > 0 && r.height > 0)) continue;
    texts++;
    const s = style(el);
    const svg = el instanceof SVGElement;
    const back = backdrop(el, behind);
    let colours = back.unknown ? [null] : [back.colour];
    if (svg && !back.unknown) colours = painted(el, back.colour, kept);
    const paint = svg ? s.fill : s.color;
    if (svg && paint === "none") continue;
    if (colours.includes(null) || paint.startsWith("url")) {
      faults.push(fault("contrast", el, "cannot be judged: " + (back.unknown || "its colour is a pattern")));
      continue;
    }
    const opacity = (svg ? +s.fillOpacity : 1) * opacityOf(el, opaque);
    const size = parseFloat(s.fontSize), bold = +s.fontWeight >= 700;
    const least = size >= 24 || bold && size >= 18.66 ? 3 : 4.5;
    for (const c of colours) {
      const ink = over(faded(rgba(paint), opacity), c);
      const ratio = contrastOf(ink, c);
      const key = [hex(ink), hex(c), least].join();
      if (ratio >= least || said.has(key)) continue;
      said.add(key);
      faults.push(fault("contrast", el, `${hex(ink)} on ${hex(c)} has a contrast of ${ratio.toFixed(2)}, and needs ${least}`));
    }
  }
  if (texts === 0) faults.push(fault("contrast", "the page", "shows no text"));
  return faults;
}

// ---- Layout ----

function first(selector, text) {
  const el = document.querySelector(selector);
  if (!el) return [fault("first", selector, "is not on the page")];
  if (!el.innerText.includes(text)) return [fault("first", el, `does not show "${text}"`)];
  if (!seen(el)) return [fault("first", el, "is not seen")];
  const range = document.createRange();
  range.selectNodeContents(el);
  const boxes = [el.getBoundingClientRect(), ...range.getClientRects()]; // text may stick out of its box
  const side = (name, of) => of(...boxes.map(b => b[name]));
  const r = { left: side("left", Math.min), top: side("top", Math.min), right: side("right", Math.max), bottom: side("bottom", Math.max) };
  const [w, h] = [innerWidth, innerHeight];
  if (scrollY !== 0 || r.top < 0 || r.left < 0 || r.bottom > h || r.right > w) {
    return [fault("first", el, `reaches from ${Math.round(r.left)},${Math.round(r.top)} to ${Math.round(r.right)},${Math.round(r.bottom)} of a screen of ${w} by ${h}`)];
  }
  const top = document.elementFromPoint((r.left + r.right) / 2, (r.top + r.bottom) / 2);
  if (!top || !(el.contains(top) || top.contains(el))) return [fault("first", el, "is covered by " + (top ? place(top) : "nothing that is known"))];
  return [];
}

const clips = s => /auto|scroll|hidden|clip/.test(s.overflowX);

function overflow() {
  const root = document.scrollingElement, width = root.clientWidth;
  if (root.scrollWidth <= width) return [];
  const faults = [fault("overflow", "the page", `is ${root.scrollWidth} wide on a screen of ${width}`)];
  for (const el of document.body.querySelectorAll("*")) {
    if (faults.length > 5) break;
    if (el.ownerSVGElement || !seen(el) || el.getBoundingClientRect().right <= width + 0.5) continue;
    let held = false;
    for (let e = el.parentElement; e && e !== document.body; e = e.parentElement) held ||= clips(style(e));
    if (!held) faults.push(fault("overflow", el, `ends at ${Math.round(el.getBoundingClientRect().right)}`));
  }
  return faults;
}

// ---- Structure ----

function nameOf(el) {
  const by = (el.getAttribute("aria-labelledby") || "").split(/\s+/).filter(Boolean).map(id => document.getElementById(id));
  if (by.length) return by.every(Boolean) ? by.map(e => e.textContent).join(" ").trim() : "";
  const title = [...el.children].find(c => c.localName === "title");
  return (el.getAttribute("aria-label") || el.getAttribute("alt") || title && title.textContent || "").trim();
}

function structure() {
  const faults = [];
  const say = (at, what) => faults.push(fault("structure", at, what));
  if (!document.documentElement.lang) say("html", "names no language");
  if (!document.title.trim()) say("head", "has no title");
  if (document.querySelectorAll("main").length !== 1) say("the page", "has not exactly one main part");
  if (document.querySelectorAll("h1").length !== 1) say("the page", "has not exactly one h1");
  let level = 0;
  for (const h of document.querySelectorAll("h1, h2, h3, h4, h5, h6")) {
    const now = +h.localName[1];
    if (now > level + 1) say(h, level ? `follows an h${level}` : "comes before any h1");
    if (!h.textContent.trim()) say(h, "is empty");
    level = now;
  }
  for (const t of document.querySelectorAll("table")) {
    const heads = [...t.querySelectorAll("th")];
    if (!heads.some(h => h.scope === "col")) say(t, "has no heads of columns");
    if (heads.some(h => !h.scope)) say(heads.find(h => !h.scope), "does not say what it is the head of");
    if (!(t.caption && t.caption.textContent.trim()) && !nameOf(t)) say(t, "has neither caption nor name");
    const columns = [...t.rows].map(r => [...r.cells].reduce((n, c) => n + c.colSpan, 0));
    if (t.tHead && Math.max(...columns) > [...t.tHead.rows[0].cells].reduce((n, c) => n + c.colSpan, 0)) say(t, "has columns without a head");
  }
  for (const s of document.querySelectorAll("svg, img")) {
    if (s.getAttribute("aria-hidden") === "true" || s.parentElement.closest("svg")) continue;
    if (s.localName === "svg" && s.getAttribute("role") !== "img") say(s, "is a drawing that is neither hidden nor a picture");
    if (!nameOf(s)) say(s, "is a picture without a name");
  }
  for (const r of document.querySelectorAll("[role=region], nav, [role=group]")) if (!nameOf(r)) say(r, "is a region without a name");
  for (const a of document.querySelectorAll("a[href], button, summary")) if (!a.textContent.trim() && !nameOf(a)) say(a, "has no name");
  for (const a of document.querySelectorAll("a[href^='#']")) if (!document.getElementById(decodeURIComponent(a.hash.slice(1)))) say(a, "leads nowhere");
  const ids = new Set();
  for (const e of document.querySelectorAll("[id]")) {
    if (ids.has(e.id)) say(e, "has the id of another");
    ids.add(e.id);
  }
  return faults.concat(overlap());
}

// overlap finds labels of a picture that lie on each other.
function overlap() {
  const faults = [];
  const most = 3; // pixels, for the differences between fonts
  for (const svg of document.querySelectorAll("svg")) {
    const boxes = [...svg.querySelectorAll("text")].filter(seen).map(t => [t, t.getBoundingClientRect()]);
    boxes.forEach(([t, a], i) => boxes.slice(i + 1).forEach(([u, b]) => {
      const w = Math.min(a.right, b.right) - Math.max(a.left, b.left), h = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (w > most && h > most) faults.push(fault("overlap", t, `lies on "${u.textContent}" of ${nameOf(svg)}`));
    }));
  }
  return faults;
}

// ---- Keyboard ----

const operable = "a[href], area[href], button, input:not([type=hidden]), select, textarea, summary, iframe, audio[controls], video[controls], [contenteditable=true], " +
  "[tabindex]:not([tabindex^='-']), [onclick], [role=button], [role=link], [role=checkbox], [role=switch], [role=tab], [role=menuitem], [role=option], [role=slider]";

function interactive(el) {
  if (el.disabled || !seen(el)) return false;
  if (el.localName === "summary") return el.parentElement.localName === "details" && el.parentElement.querySelector(":scope > summary") === el;
  return true;
}

function scrolls(el) {
  const s = style(el);
  return /auto|scroll/.test(s.overflowX) && el.scrollWidth > el.clientWidth + 1 || /auto|scroll/.test(s.overflowY) && el.scrollHeight > el.clientHeight + 1;
}

let visited = new Set(), noticed = [];

function begin() {
  visited = new Set();
  noticed = [];
  if (document.activeElement) document.activeElement.blur();
  scrollTo(0, 0);
  getSelection().removeAllRanges();
}

function step() {
  const el = document.activeElement;
  if (!el || el === document.body || el === document.documentElement || visited.has(el)) return { end: true, open: false };
  visited.add(el);
  ring(el);
  return { end: false, open: el.localName === "summary" && !el.parentElement.open };
}

// ring looks at the outline of the element that has the focus.
function ring(el) {
  const s = style(el), r = el.getBoundingClientRect();
  const say = what => noticed.push(fault("focus", el, what));
  const width = parseFloat(s.outlineWidth);
  if (r.bottom <= 0 || r.right <= 0 || r.top >= innerHeight || r.left >= innerWidth || !seen(el)) return say("has the focus where nobody sees it");
  if (s.outlineStyle === "none" || !(width >= 1)) return say("does not show that it has the focus");
  const back = backdrop(el.parentElement || el, new Map());
  if (back.unknown) return say("cannot be judged: " + back.unknown);
  if (s.outlineStyle !== "auto") {
    const ratio = contrastOf(over(rgba(s.outlineColor), back.colour), back.colour);
    if (ratio < 3) say(`shows the focus with a contrast of ${ratio.toFixed(2)}, and needs 3`);
  }
  // What scrolls cuts off what is drawn beyond its edges.
  const out = width + parseFloat(s.outlineOffset);
  const sides = { left: r.left - out, right: r.right + out, top: r.top - out, bottom: r.bottom + out };
  const cut = new Set();
  for (let e = el.parentElement; e && e !== document.body && e !== document.documentElement; e = e.parentElement) {
    if (!clips(style(e))) continue;
    const b = e.getBoundingClientRect();
    if (sides.left < b.left - 0.5) cut.add("left");
    if (sides.right > b.right + 0.5) cut.add("right");
    if (sides.top < b.top - 0.5) cut.add("top");
    if (sides.bottom > b.bottom + 0.5) cut.add("bottom");
  }
  if (cut.size > 2) say("shows its focus with an outline that is cut off: " + [...cut].join(", "));
}

function end() {
  const faults = noticed.slice();
  const say = (el, what) => faults.push(fault("keyboard", el, what));
  for (const el of document.querySelectorAll(operable)) {
    if (interactive(el) && !visited.has(el)) say(el, "cannot be reached with Tab");
  }
  for (const el of document.body.querySelectorAll("*")) {
    if (el.ownerSVGElement || !seen(el) || !scrolls(el)) continue;
    // Some browsers let the keyboard into whatever scrolls, others do not.
    if (!el.hasAttribute("tabindex") || !visited.has(el)) say(el, "scrolls, and the keyboard cannot be sure to get there");
  }
  for (const d of document.querySelectorAll("details:not([open])")) if (seen(d)) say(d, "was not opened by Enter");
  return faults;
}

function openAll() {
  for (const d of document.querySelectorAll("details")) d.open = true;
}

return { first, overflow, contrast, structure, begin, step, end, openAll };
})()
