"use strict";
// Colours, words and numbers of groups: the same in the table, the matrix and the pictures.
const PALETTE = ["#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9"], ALONE = "#8A8A8A";
const MOST_SITE_COLUMNS = 8, MOST_FEATURES = 6;
const word = () => S.groups.word, Word = () => word()[0].toUpperCase() + word().slice(1);
function mix(a, b, share) {
  const part = (x, i) => parseInt(x.slice(1 + 2 * i, 3 + 2 * i), 16);
  return `rgb(${[0, 1, 2].map((i) => Math.round((1 - share) * part(a, i) + share * part(b, i))).join(", ")})`;
}
function tint(k) { // grey is for what one site holds alone, as in the README's picture; after six, shades
  if (k >= S.K) return colour("aside");
  if (S.counts[k] < 2) return ALONE;
  const dark = matchMedia("(prefers-color-scheme: dark)").matches && !matchMedia("print").matches;
  const turn = Math.floor(k / PALETTE.length) % 3;
  return mix(PALETTE[k % PALETTE.length], turn === 1 ? "#000000" : "#ffffff",
    [dark ? 0.12 : 0, dark ? 0.25 : 0.38, 0.45][turn]);
}
function chip(k) { const mark = el("span", { class: "chip", "aria-hidden": "true" }); mark.style.background = tint(k);
  return mark; }
const term = (text, key) => el("span", { class: "term", tabindex: 0, "data-help": key }, text);
function help(event) { // glossary on hover and focus; the words themselves stand in the page
  const node = event.target.closest && event.target.closest("[data-help]");
  const meaning = node && $(`word-${node.dataset.help}`);
  if (!meaning || event.type === "mouseout" || event.type === "focusout") return tip(event, "");
  const box = node.getBoundingClientRect();
  tip({ clientX: event.clientX || box.left, clientY: event.clientY || box.bottom }, meaning.textContent);
}
for (const type of ["mouseover", "mouseout", "focusin", "focusout"]) document.addEventListener(type, help);

// ---- numbers with the digits they deserve ----
const DIGITS = 6, MOST_DECIMALS = 7;
function spell(x, decimals) { // as inputs/digits.py
  if (x === null || x === undefined) return "–";
  if (0 <= decimals && decimals <= MOST_DECIMALS) return (+x.toFixed(decimals) + 0).toLocaleString("en",
    { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
  const digits = x === 0 ? -1 : Math.floor(Math.log10(Math.abs(x))) + decimals;
  return digits < 0 ? "0" : x.toExponential(decimals > 0 ? Math.min(digits, DIGITS - 1) : digits);
}
const fixed = (x, d) => spell(x, S.groups.decimals[d]);
const about = (x, d) => // a deviation: three digits say enough
  `± ${spell(x, Math.min(S.groups.decimals[d], Math.max(0, 2 - Math.floor(Math.log10(x)))))}`;
const FEWEST = 5, isFew = (n) => typeof n === "string"; // "< 5": too few to be shown
const whole = (x) => x === null || x === undefined ? "–" : isFew(x) ? x : Math.round(x).toLocaleString("en");
const withUnit = (d) => S.groups.features[d] + (S.groups.units[d] ? ` (${S.groups.units[d]})` : "");
function differs(k, d) {
  const G = S.groups, [mean, fused, error] = [G.means[k][d], G.fused[k][d], G.errors[k][d]];
  const outside = G.low && (mean < G.low[k][d] || mean > G.high[k][d]); // then the interval is that of another number
  return mean !== null && fused !== null && (outside || (error !== null && Math.abs(mean - fused) > error));
}
function meanCell(k, d) {
  const G = S.groups, fused = differs(k, d) ? `fused ${fixed(G.fused[k][d], d)}` : "";
  const drawn = G.low && G.low[k][d] !== null ? `${fixed(G.low[k][d], d)} to ${fixed(G.high[k][d], d)}` : "";
  const error = !drawn && G.errors[k][d] !== null && G.means[k][d] !== null ? about(G.errors[k][d], d) : "";
  const below = (text) => text ? el("small", {}, text) : null;
  return el("td", { class: "n" }, fixed(G.means[k][d], d), below(fused), below(drawn || error));
}
const sharesOf = (x) => S.groups.shares && x !== null ? `${Math.round(100 * x)} %` : whole(x);
function sumPoints(rows) { // of fragments, or of all that a site sent; a bound where one of them is not shown
  const own = rows.map((r) => S.groups.members[r]), few = own.filter(isFew).length,
    total = own.reduce((t, n) => t + (isFew(n) ? 0 : n), 0);
  return !own.length ? undefined : own.includes(null) ? null : few ? `< ${(total + few * FEWEST).toLocaleString("en")}` : total;
}
const pointsAt = (k, j) => sumPoints(rowsOf[k].filter((r) => siteOf[r] === j));
const siteTotal = (j) => S.groups.members && !S.groups.shares
  ? sumPoints(range(siteOf.length).filter((r) => siteOf[r] === j)) : null;


// ---- in how many sites ----
function unsure(k) { // whether more or fewer sites than were matched may hold it
  const G = S.groups;
  return G.held !== null && (G.held[k][1] !== S.counts[k] || G.held[k][2] !== S.counts[k]);
}
const heldBy = (k) => S.groups.held === null ? "" : ` Expected at ${number(S.groups.held[k][0], 3)}, `
  + `at ${sitesBetween(k)} with probability ${100 * S.groups.level} %.`;
function sitesBetween(k) {
  const [, low, high] = S.groups.held[k];
  return low === high ? whole(low) : `${whole(low)} to ${whole(high)}`;
}

// ---- the table ----
const WORDS = { topic: "Most probable words", pattern: "Largest entries", group: "Called" };
function atoms() {
  const G = S.groups, listed = D.J === D.sites.length && D.J <= MOST_SITE_COLUMNS && G.members !== null
    && innerWidth > 720; // a phone has them in the detail
  let list = range(S.counts.length);
  if (state.site !== null) list = list.filter((k) => holds(state.site, k));
  if (state.atomOrder === "doubt" && S.confidence) list.sort((a, b) => least[a] - least[b] || a - b);
  if (state.atomOrder === "scatter") list.sort((a, b) => (scatter[b] ?? -1) - (scatter[a] ?? -1) || a - b);
  const shown = range(G.features.length <= MOST_FEATURES + 1 ? G.features.length : MOST_FEATURES),
    rest = G.columns - shown.length, all = G.points !== null && !G.shares;
  const heads = [{ name: Word() }, { name: "Sites", n: true }, ...(S.time ? [{ name: "First seen" }, { name: "Last seen" },
      { node: el("th", { scope: "col", class: "n" }, term("Lives", "lives"), el("small", { class: "line" }, `at ${S.time.newest}`)) }] : []), ...(all ? [{ name: cap(G.counted), n: true }] : []),
    ...(listed ? D.sites.map((name) => ({ name, n: true, site: true })) : []),
    ...(S.confidence ? [{ node: el("th", { scope: "col", class: "n" }, term("Confidence", "confidence")) }] : []),
    ...(S.words ? [{ name: WORDS[word()] ?? "Most probable symbols" }] : []), ...shown.map((d) => ({ node: el("th",
            { scope: "col", class: "n" }, ...wrap(G.features[d]), G.units[d] ? el("small", {}, G.units[d]) : null) })),
    ...(rest > 0 && shown.length ? [{ name: `${rest} more` }] : [])];
  const row = (k) => el("tr", { class: state.atom === k ? "chosen" : "" },
    el("th", { scope: "row" }, chip(k), atomButton(k), k >= S.K ? el("span", { class: "hint" }, " ",
        term("excluded", "aside")) : null),
    el("td", { class: "n" }, `${S.counts[k].toLocaleString("en")}`, unsure(k) ? el("small", {}, sitesBetween(k)) : null),
    ...(S.time ? (k < S.K ? [S.time.first[k], S.time.last[k]] : ["–", "–"]).map((t) => el("td", {}, t)) : []),
    ...(S.time ? [el("td", { class: "n" }, k < S.K ? probability(S.time.alive[k]) : "–")] : []),
    ...(all ? [el("td", { class: "n strong" }, k < S.K ? whole(G.points[k]) : "–")] : []),
    ...(listed ? D.sites.map((_, j) => { const n = pointsAt(k, j);
          return el("td", { class: `n site ${n === undefined ? "none" : ""}` }, n === undefined ? "–"
            : n === null ? "?" : sharesOf(n)); }) : []),
    ...(S.confidence ? [el("td", { class: `n ${least[k] !== null && least[k] < SURE ? "doubt" : ""}` },
          probability(least[k]))] : []),
    ...(S.words ? [el("td", { class: "words" }, S.words[k].slice(0, 8).map((w) => w[0]).join(", "))] : []),
    ...shown.map((d) => k < S.K ? meanCell(k, d) : el("td", { class: "n" }, "–")),
    ...(rest > 0 && shown.length ? [el("td", {}, el("button", { type: "button", class: "link",
            onclick: () => openAtom(k), "aria-label": `All columns of ${word()} ${k}` }, "…"))] : []));
  table($("atoms"), heads, list.slice(0, state.atoms).map(row));
  const before = 2 + (S.time ? 3 : 0) + all + (listed ? D.sites.length : 0) + Boolean(S.confidence) + Boolean(S.words);
  const learned = (name, key, values) => el("tr", {}, el("th", { scope: "row", colspan: before }, term(name, key)),
    ...shown.map((d) => el("td", { class: "n" }, values[d] === null ? "–" : about(values[d], d))),
    ...(rest > 0 && shown.length ? [el("td")] : []));
  if (shown.some((d) => G.noise[d] !== null)) $("atoms").append(el("tfoot", {},
      learned("differs from site to site by", "noise", G.noise),
      learned(`differs from ${word()} to ${word()} by`, "spread", G.spread)));
  more("more-atoms", list.length, state.atoms, `${word()}s`);
  $("groups-hint").textContent = groupsHint(shown.length, listed, all);
}
function groupsHint(features, listed, all) {
  const G = S.groups, parts = [`${Word()}s are numbered from 0, as in fusion.labels${G.members ? " and modelweld apply" : ""}.`];
  if (range(S.K).some(unsure)) parts.push(`Small under sites: how many hold it with probability ${100 * G.level} %, where that is not certain.`);
  if (all && !listed) parts.push(`Click a ${word()} for its ${G.counted} at every site.`);
  if (features && S.time) parts.push("Values: where it was when it was last seen, ± one standard error.");
  else if (features) parts.push(`Large: the mean of what sites sent${G.members ? `, weighted by ${G.counted}` : ""}.`);
  if (features && G.low) parts.push(`Small: where the fused ${word()} lies with probability ${100 * G.level} %, the matching taken as uncertain too.`);
  else if (features && !S.time) parts.push("± is one standard error of that mean: sites' stated errors and the learned difference from site to site.");
  if (features && !S.time && range(S.K).some((k) => range(features).some((d) => differs(k, d))))
    parts.push("“fused” is what a further site is expected to have, where that differs from the mean by more than its standard error, or the mean lies outside the interval: it leans towards the others.");
  if (G.aside >= 0.5 && all) parts.push(`${whole(G.aside)} ${G.counted} are in what is excluded.`);
  return parts.join(" ");
}

// ---- axes with numbers ----
function tickStep(low, high, most) {
  const raw = (high - low) / Math.max(1, most), power = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw) || 10 * power;
}
function ticks(low, high, most) {
  const step = tickStep(low, high, most), found = [];
  for (let i = Math.ceil(low / step); i * step <= high && found.length < 50; i++) found.push(i * step);
  return found;
}
const plainTicks = (low, high, most) => { // a digit of the step is the last
  const last = -Math.floor(Math.log10(tickStep(low, high, most)) + 1e-9);
  const decimals = Math.max(Math.abs(low), Math.abs(high)) < 1e15 ? Math.max(0, last) : last;
  return ticks(low, high, most).map((v) => [v, spell(v, decimals).replaceAll(",", "")]);
};
function frame(c, box, width, height, pad, names, across = plainTicks) {
  const [line, muted, ink] = ["line", "muted", "ink"].map(colour), right = width - pad.right,
    bottom = height - pad.bottom;
  const x = (v) => pad.left + (v - box[0][0]) / (box[0][1] - box[0][0]) * (right - pad.left);
  const y = (v) => bottom - (v - box[1][0]) / (box[1][1] - box[1][0]) * (bottom - pad.top);
  c.lineWidth = 1; c.strokeStyle = line; c.fillStyle = muted; c.globalAlpha = 1;
  c.textAlign = "center";
  across(...box[0], Math.floor((right - pad.left) / 80)).forEach(([v, text]) => { c.beginPath(); c.moveTo(x(v), pad.top);
    c.lineTo(x(v), bottom + 4); c.stroke(); c.fillText(text, x(v), bottom + 13); });
  c.textAlign = "right";
  plainTicks(...box[1], Math.floor((bottom - pad.top) / 45)).forEach(([v, text]) => { c.beginPath(); c.moveTo(pad.left - 4, y(v));
    c.lineTo(right, y(v)); c.stroke(); c.fillText(text, pad.left - 7, y(v)); });
  c.strokeStyle = muted; c.beginPath(); c.moveTo(pad.left, pad.top); c.lineTo(pad.left, bottom);
  c.lineTo(right, bottom); c.stroke();
  c.fillStyle = ink; c.textAlign = "right"; c.fillText(names[0], right, bottom + 30);
  c.textAlign = "left"; c.fillText(names[1], 2, 9);
  return (p) => [x(p[0]), y(p[1])];
}
const PAD = { left: 52, right: 12, top: 22, bottom: 40 };
