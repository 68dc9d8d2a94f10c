// Reads the numbers, keeps what is chosen, fills the tables and answers clicks and keys; figures.js draws.
const D = JSON.parse(document.getElementById("numbers").textContent);
const $ = (id) => document.getElementById(id);
const STEP = 25, FIRST = 10, SURE = D.sure_from, MOST_LISTED = 200, MOST_NAMED = 8;
const state = { set: 0, site: null, atom: null, query: "", order: "likeness", atomOrder: "number", atoms: STEP,
  sites: STEP, doubtful: FIRST,
  sort: { key: "warning", down: true }, cell: [0, 0] };
let S, rowsOf, siteOf, rowIn, least, scatter, said;

// ---- small helpers; text only ever enters as text ----
function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value); else node.setAttribute(name, value);
  }
  node.append(...children.filter((c) => c !== null && c !== undefined));
  return node;
}
function svg(tag, attributes = {}, text = null) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text !== null) node.textContent = text;
  return node;
}
const on = (id, type, answer) => $(id).addEventListener(type, answer);
const titled = (node, text) => { node.append(svg("title", {}, text)); return node; };
function number(x, digits = 3) {
  if (x === null || x === undefined) return "–";
  if (x !== 0 && (Math.abs(x) >= 1e6 || Math.abs(x) < 1e-3)) return x.toExponential(2);
  return String(+x.toPrecision(Math.max(digits, Math.ceil(Math.log10(Math.abs(x) + 1)))));
}
const probability = (p) => p === null || p === undefined ? "–" : p > 0.9995 ? "> 0.999" : p.toFixed(3);
const cap = (text) => text[0].toUpperCase() + text.slice(1);
const plural = (n, noun) => `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`;
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const range = (n) => Array.from({ length: n }, (_, i) => i);
const least_of = (xs) => xs.reduce((a, b) => Math.min(a, b), Infinity),
  most_of = (xs) => xs.reduce((a, b) => Math.max(a, b), -Infinity);
function sized(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`; canvas.style.height = `${height}px`;
  const c = canvas.getContext("2d");
  c.scale(ratio, ratio); c.font = "11px system-ui, sans-serif"; c.textBaseline = "middle";
  return c;
}
function tip(event, text) {
  $("tip").hidden = !text;
  if (!text) return;
  $("tip").textContent = text;
  const box = $("tip").getBoundingClientRect();
  $("tip").style.left = `${Math.min(event.clientX + 14, innerWidth - box.width - 8)}px`;
  $("tip").style.top = `${Math.min(event.clientY + 14, innerHeight - box.height - 8)}px`;
}
const atomButton = (k) =>
  el("button", { type: "button", class: "link", onclick: () => openAtom(k), "aria-label": `Show members of ${word()} ${k}` },
    String(k));
const siteButton = (j) => el("button", { type: "button", class: "link", onclick: () => choose(D.sites[j], j),
    "aria-label": `Show only site ${D.sites[j]}` }, D.sites[j]);
const wrap = (name) => name.split(/(?<=_)/).flatMap((part, i) => i ? [el("wbr"), part] : [part]); // may break after "_"
function table(node, heads, rows) {
  node.replaceChildren(el("thead", {},
      el("tr", {}, ...heads.map((h) => h.node
          || el("th", { scope: "col", class: `${h.n ? "n" : ""} ${h.site ? "site" : ""}` }, ...wrap(h.name))))),
        el("tbody", {}, ...rows));
}

// ---- which set ----
function use(index) {
  S = D.sets[index]; state.set = index; state.atom = null;
  rowsOf = S.counts.map(() => []); siteOf = []; rowIn = [];
  S.sizes.forEach((size, j) => { for (let i = 0; i < size; i++) { siteOf.push(j); rowIn.push(i); } });
  S.labels.forEach((k, row) => rowsOf[k].push(row));
  least = rowsOf.map((rows) => S.confidence ? least_of(rows.map((r) => S.confidence[r] ?? 1)) : null);
  scatter = rowsOf.map((rows, k) => S.counts[k] > 1 && rows.length
    ? Math.sqrt(rows.reduce((t, r) => t + S.distance[r] ** 2, 0) / rows.length) : null);
  said = new Map(D.sites.map((name) => [name, new Set()])); // what is said of each site
  S.alerts.forEach(({ sites, text }) => sites.forEach((name) => said.get(name)?.add(
    sites.length > MOST_NAMED ? `One of ${plural(sites.length, "site")} that are named above.` : cap(text))));
  (S.diagnostics || []).forEach((d, j) => { if (d.warning) said.get(D.sites[j]).add(cap(d.warning)); });
  state.atoms = state.sites = STEP; state.doubtful = FIRST;
  mapAxes(); pathColumns();
  document.querySelectorAll("[data-set]").forEach((node) => { node.hidden = +node.dataset.set !== index; });
}
const holds = (j, k) => rowsOf[k].some((r) => siteOf[r] === j);
const matching = () =>
  range(D.sites.length).filter((j) => D.sites[j].toLowerCase().includes(state.query.toLowerCase()));

// ---- tables ----
function more(id, all, shown, nouns) { $(id).hidden = all <= shown;
  $(id).textContent = `Show ${Math.min(STEP, all - shown)} more of ${all.toLocaleString("en")} ${nouns}`; }
function doubtful() {
  const list = S.doubtful.filter((m) => state.site === null || m.site === D.sites[state.site]),
    known = S.confidence !== null;
  $("doubt-title").textContent = known ? "Doubtful matches" : `Matches farthest from their ${word()}`;
  $("doubt-lead").textContent = !list.length
    ? (known ? `Every match${state.site === null ? "" : " of this site"} has a confidence of ${SURE} or more: ${S.confidence_meaning}.` : "None.") : known ? `Least certain first. Confidence is ${S.confidence_meaning}.` : `${S.time ? "Confidences are not computed where sites have times; distances are from where the group was at the time of the site." : "Confidences were left out because of size."} Distances are in typical deviations: 1 is usual.`;
  $("doubtful").parentElement.hidden = !list.length;
  table($("doubtful"), [{ name: "Site" }, { name: `Its ${word()}`, n: true }, { name: "Matched to", n: true },
      ...(known ? [{ name: "Confidence", n: true }, { name: "Or else", n: true }, { name: "with", n: true }] : []),
        { name: "Distance", n: true }], list.slice(0, state.doubtful).map((m) => el("tr", {},
    el("th", { scope: "row" }, m.site), el("td", { class: "n" }, String(m.row)),
      el("td", { class: "n" }, atomButton(m.atom)),
    ...(known ? [el("td", { class: "n doubt" }, probability(m.confidence)),
        el("td", { class: "n" }, m.other === null ? `a new ${word()}` : atomButton(m.other)),
          el("td", { class: "n" }, probability(m.other_probability))] : []),
            el("td", { class: "n" }, number(m.distance, 2)))));
  more("more-doubtful", list.length, state.doubtful, "matches");
}
const FIELDS = [["site", "Site"], ["points", "Points"], ["size", "Groups"], ["unshared", "Only here"], ["gain", "Gain"], ["p", "p"],
  ["score", "Score"], ["surprise", "Surprise"], ["shift", "Shift"], ["influence", "Influence"], ["warning", "Warning"]];
function sites() {
  const titles = { points: cap(S.groups.counted || "points"), size: `${Word()}s` };
  const of = (j) => ({ site: D.sites[j], size: S.sizes[j], points: siteTotal(j), gain: D.verdict ? D.verdict.sites[j].gain : null,
      p: D.verdict ? D.verdict.sites[j].p_value : null,
      ...(S.diagnostics ? S.diagnostics[j] : {}), warning: [...said.get(D.sites[j])].join(" ") });
  const warned = D.sites.some((name) => said.get(name).size);
  const fields = FIELDS.filter(([name]) => name === "warning" ? warned
    : name === "points" ? S.groups.members !== null && !S.groups.shares
      : S.diagnostics || ["site", "size", "gain", "p"].includes(name)), { key, down } = state.sort;
  const list = matching().map((j) => [j, of(j)]).sort(([i, a], [j, b]) => {
    const [x, y] = key === "warning" ? [+Boolean(a.warning), +Boolean(b.warning)] : [a[key], b[key]];
    const order = typeof x === "string" ? x.localeCompare(y, "en", { numeric: true })
      : (x ?? -Infinity) - (y ?? -Infinity);
    return (down ? -order : order) || i - j;
  });
  table($("sites"), fields.map(([name, title]) =>
      ({ node: el("th", { scope: "col", class: name === "site" || name === "warning" ? "" : "n",
              "aria-sort": key === name ? (down ? "descending" : "ascending") : "none" },
    el("button", { type: "button", id: `sort-${name}`, ...($(`word-${name}`) ? { "data-help": name } : {}),
        onclick: () => { state.sort = { key: name, down: key === name ? !down : name !== "site" }; sites();
          $(`sort-${name}`).focus(); } }, (titles[name] || title) + (key === name ? (down ? " ↓" : " ↑") : ""))) })),
    list.slice(0, state.sites).map(([j, s]) => el("tr", { class: state.site === j ? "chosen" : "" },
        ...fields.map(([name]) => name === "site" ? el("th", { scope: "row" }, siteButton(j))
          : name === "warning" ? el("td", { class: "warn" }, s.warning) : el("td", { class: "n" }, name === "points"
            ? whole(s[name]) : number(s[name]))))));
  more("more-sites", list.length, state.sites, "sites");
}
function warnings() {
  const list = S.alerts.map((alert) => el("li", {}, cap(alert.text))), first = list.splice(0, 5);
  $("warnings").replaceChildren(...first); $("alerts").hidden = !first.length;
  $("more-warnings").hidden = !list.length;
  $("more-warnings").replaceChildren(el("summary", {}, `${list.length} more`), el("ul", { class: "warnings" }, ...list));
}

// ---- one atom ----
function strip(k, d) {
  const values = rowsOf[k].slice(0, MOST_LISTED).map((r) => S.members[r][d]).filter((v) => v !== null),
    all = S.atoms.slice(0, Math.max(S.K, 1)).map((row) => row[d]).concat(values, [S.atoms[k][d]]).filter((v) => v !== null);
  if (S.atoms[k][d] === null) return null;
  const low = least_of(all), high = most_of(all), x = (v) => 4 + (v - low) / (high - low || 1) * 142,
    mark = svg("svg", { viewBox: "0 0 150 16", "aria-hidden": "true" });
  mark.append(svg("line", { x1: 0, x2: 150, y1: 8, y2: 8, stroke: colour("line") }),
    ...values.map((v) => svg("circle", { cx: x(v), cy: 8, r: 2.5, fill: colour("muted"), "fill-opacity": 0.6 })),
      svg("line", { x1: x(S.atoms[k][d]), x2: x(S.atoms[k][d]), y1: 1, y2: 15, stroke: tint(k),
          "stroke-width": 2.6 }));
  return mark;
}
let opener = null; // where one came from; tables are filled anew meanwhile, so by table and label
function openAtom(k) {
  if ($("detail").hidden) { const from = document.activeElement;
    opener = { place: from.closest("table") || document, label: from.getAttribute("aria-label") }; }
  state.atom = k; show(); $("detail").hidden = false; $("detail").scrollTop = 0;
  $("detail").focus({ preventScroll: true });
}
function closeAtom() {
  $("detail").hidden = true; state.atom = null; show();
  const back = opener && opener.label && opener.place.querySelector(`[aria-label="${CSS.escape(opener.label)}"]`);
  if (back) back.focus({ preventScroll: true });
  opener = null;
}
function detail() {
  const k = state.atom;
  if (k === null) { $("detail").hidden = true; return; }
  const rows = [...rowsOf[k]].sort((a, b) => S.confidence ? (S.confidence[a] ?? 2) - (S.confidence[b] ?? 2)
    : S.distance[b] - S.distance[a]);
  $("detail-title").replaceChildren(chip(k), `${Word()} ${k}`);
  const values = el("table"), members = el("table", { id: "members" });
  table(values, [{ name: "Column" }, { name: "Fused", n: true }, { name: "Sites ±", n: true },
      ...(S.members ? [{ name: "Sites’ own" }] : [])],
        S.columns.map((name, d) => el("tr", {}, el("th", { scope: "row" }, name),
            el("td", { class: "n" }, spell(S.atoms[k][d], S.decimals[d])), el("td", { class: "n" }, spell(S.spread[k][d], S.decimals[d])),
              ...(S.members ? [el("td", {}, strip(k, d))] : []))));
  const few = S.members ? range(Math.min(3, S.columns.length)) : [];
  const counted = S.groups.members !== null;
  table(members, [{ name: "Site" }, { name: "No. at site", n: true },
      ...(counted ? [{ name: cap(S.groups.counted), n: true }] : []),
      ...(S.confidence ? [{ name: "Confidence", n: true }] : []), { name: "Distance", n: true },
        ...few.map((d) => ({ name: S.columns[d], n: true }))],
          rows.slice(0, MOST_LISTED).map((r) => el("tr", { class: siteOf[r] === state.site ? "chosen" : "" },
              el("th", { scope: "row" }, D.sites[siteOf[r]]), el("td", { class: "n" }, String(rowIn[r])),
                ...(counted ? [el("td", { class: "n" }, sharesOf(S.groups.members[r]))] : []),
                ...(S.confidence ? [el("td", { class: `n ${S.confidence[r] < SURE ? "doubt" : ""}` },
                      probability(S.confidence[r]))] : []), el("td", { class: "n" }, number(S.distance[r], 2)),
                        ...few.map((d) => el("td", { class: "n" }, spell(S.members[r][d], S.decimals[d]))))));
  $("detail-body").replaceChildren(
    el("p", {}, `At ${S.counts[k].toLocaleString("en")} of ${plural(D.J, "site")}${k < S.K && S.groups.points && !S.groups.shares ? `: ${whole(S.groups.points[k])} ${S.groups.counted}` : ""}${rows.length > S.counts[k] ? `, in ${plural(rows.length, "piece")}` : ""}.${heldBy(k)}`),
    ...(S.time && k < S.K ? [el("p", {}, `First seen ${S.time.first[k]}, last seen ${S.time.last[k]}; it lives at ${S.time.newest} with probability ${probability(S.time.alive[k])}.`)] : []), ...(k >= S.K ? [el("p", { class: "doubt" }, "Excluded: it was not fitted.")] : []),
    ...(S.words ? [el("h3", {}, word() === "pattern" ? "Largest entries" : "Words"), el("p", {}, S.words[k].map((w) => `${w[0]} ${w[1].toFixed(3)}`).join(", "))]
      : []),
    el("h3", {}, rows.length > MOST_LISTED ? `Members, the ${MOST_LISTED} least certain` : "Members"),
      el("div", { class: "scroll" }, members), el("h3", {}, "Values"), el("div", { class: "scroll" }, values));
}

// ---- together ----
function drawings() { lives(); matrix(); map(); paths(); picture(); supports(); objective(); }
function show() { drawings(); atoms(); doubtful(); sites(); warnings(); detail(); }
function choose(text, exact = D.sites.indexOf(text)) {
  $("site").value = text; state.query = text;
  const some = matching();
  state.site = text === "" ? null : exact >= 0 ? exact : some.length === 1 ? some[0] : null;
  state.atoms = state.sites = STEP; state.doubtful = FIRST;
  $("status").textContent = text === "" ? "" : state.site !== null
    ? `Site ${D.sites[state.site]}: ${plural(S.sizes[state.site], word())}` : plural(some.length, "site");
  show();
}
$("site-names").append(...D.sites.map((name) => el("option", { value: name })));
$("set").append(...D.sets.map((s, i) => el("option", { value: i }, s.name))); $("set-label").hidden = D.sets.length < 2;
on("set", "change", (e) => { use(+e.target.value); show(); });
on("site", "input", (e) => choose(e.target.value));
on("clear", "click", () => { closeAtom(); choose(""); });
on("order", "change", (e) => { state.order = e.target.value; matrix(); });
on("atom-order", "change", (e) => { state.atomOrder = e.target.value; atoms(); });
for (const [name, fill] of Object.entries({ atoms, doubtful, sites }))
  on(`more-${name}`, "click", () => { state[name] += STEP; fill(); });
on("close", "click", closeAtom);
document.addEventListener("keydown", (e) => { if (e.key === "Escape" && !$("detail").hidden) closeAtom(); });
on("matrix", "mousemove",
  (e) => { const cell = cellAt(e); tip(e, cell && cell[2] ? cellText(cell[0], cell[1]) : ""); });
on("matrix", "click",
  (e) => { const cell = cellAt(e); if (cell) { state.cell = cell.slice(0, 2); openAtom(M.atoms[cell[1]]); } });
on("matrix", "keydown", (e) => {
  const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[e.key];
  if (e.key === "Enter") openAtom(M.atoms[state.cell[1]]);
  if (!step) return;
  e.preventDefault();
  state.cell = [Math.max(0, Math.min(M.sites.length - 1, state.cell[0] + step[0])),
    Math.max(0, Math.min(M.atoms.length - 1, state.cell[1] + step[1]))];
  $("status").textContent = cellText(...state.cell).replace("\n", ": "); matrix();
});
for (const type of ["focus", "blur"]) on("matrix", type, matrix);
const pointed = (e) => [nearest(e, $("map"), P.atoms, 10), nearest(e, $("map"), P.members, 6)];
on("map", "mousemove",
  (e) => { const [k, r] = pointed(e); tip(e, k >= 0 ? atomText(k) : r >= 0 ? memberText(r) : ""); });
on("map", "click",
  (e) => { const [k, r] = pointed(e); if (k >= 0 || r >= 0) openAtom(k >= 0 ? k : S.labels[r]);
    else if (state.atom !== null) closeAtom(); });
for (const id of ["matrix", "map"]) on(id, "mouseleave", (e) => tip(e, ""));
for (const id of ["map-across", "map-up"]) on(id, "change", map);
on("save", "click",
  () => { const link = el("a",
      { href: URL.createObjectURL(new Blob([$("numbers").textContent], { type: "application/json" })),
        download: "fusion.json" }); link.click(); URL.revokeObjectURL(link.href); });
bindTime();
let waiting = 0;
window.addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(show, 120); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
for (const type of ["beforeprint", "afterprint"]) window.addEventListener(type, show);
use(0); show();
document.documentElement.dataset.ready = "yes";
