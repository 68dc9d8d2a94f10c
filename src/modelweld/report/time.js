// Groups that have times: when they live, as a timeline, and where they go, as paths. Follows figures.js.
const DAY = 86400000, TL = {}, TP = {};
function dateTicks(low, high, most) { // whole years, months, days or hours, whichever are few enough
  const years = (high - low) / 365.25, iso = (t) => new Date(t * DAY).toISOString(), found = [];
  const year = (t) => +iso(t).slice(0, 4), at = (y, m = 0) => Date.UTC(y, m) / DAY;
  if (years / most >= 0.5) {
    const step = Math.max(1, ...ticks(0, years, most).slice(1, 2).map(Math.ceil));
    for (let y = Math.ceil(year(low) / step) * step; at(y) <= high; y += step)
      if (at(y) >= low) found.push([at(y), String(y)]);
  } else if (years * 12 >= 2) {
    const step = [1, 2, 3, 6].find((s) => years * 12 / s <= most) || 6;
    for (let y = year(low); y <= year(high); y++) for (let m = 0; m < 12; m += step)
      if (at(y, m) >= low && at(y, m) <= high) found.push([at(y, m), iso(at(y, m)).slice(0, 7)]);
  } else ticks(low, high, most).forEach((t) => found.push([t, Number.isInteger(t) ? iso(t).slice(0, 10) : iso(t).slice(5, 16).replace("T", " ")]));
  return found;
}
const timeTicks = (low, high, most) => S.time.dated ? dateTicks(low, high, Math.max(1, most))
  : plainTicks(low, high, most);
function timeBox() {
  const ends = S.time.moments.concat(S.time.span.flat()), low = least_of(ends), high = most_of(ends),
    margin = (high - low || 1) * 0.02;
  return [low - margin, high + margin];
}
const isLit = (k) => (state.atom === null || state.atom === k) && (state.site === null || holds(state.site, k));
function lives() {
  $("lives-section").hidden = $("paths-section").hidden = !S.time;
  $("likeness").textContent = S.time ? "by time" : "alike side by side";
  if (!S.time) return;
  const T = S.time, rows = S.order.atoms.filter((k) => k < S.K), canvas = $("lives"), n = rows.length;
  const width = canvas.parentElement.clientWidth, h = Math.max(1, Math.min(20, 620 / Math.max(1, n))), named = h >= 10;
  const left = named ? 30 : 6, top = 6, bottom = top + h * n, c = sized(canvas, width, bottom + 24), box = timeBox();
  const x = (t) => left + (t - box[0]) / (box[1] - box[0]) * (width - left - 8), y = (i) => top + (i + 0.5) * h;
  const [line, muted, ink, accent] = ["line", "muted", "ink", "accent"].map(colour);
  c.strokeStyle = line; c.textAlign = "center"; c.fillStyle = muted; c.lineWidth = 1;
  timeTicks(...box, Math.floor((width - left) / 80)).forEach(([t, text]) => { c.beginPath(); c.moveTo(x(t), top);
    c.lineTo(x(t), bottom + 4); c.stroke(); c.fillText(text, Math.max(30, Math.min(width - 30, x(t))), bottom + 14); });
  TL.rows = rows; TL.top = top; TL.h = h;
  const newest = most_of(T.moments);
  rows.forEach((k, i) => {
    const alpha = isLit(k) ? 1 : 0.15, [first, last] = T.span[k];
    c.strokeStyle = c.fillStyle = tint(k); c.lineWidth = Math.max(1, Math.min(5, h * 0.4));
    c.globalAlpha = 0.4 * alpha; c.beginPath(); c.moveTo(x(first), y(i)); c.lineTo(x(last), y(i)); c.stroke();
    c.globalAlpha = 0.4 * alpha * (T.alive[k] ?? 0); c.setLineDash([3, 3]); c.beginPath(); c.moveTo(x(last), y(i));
    c.lineTo(x(newest), y(i)); c.stroke(); c.setLineDash([]);
    c.globalAlpha = alpha;
    rowsOf[k].forEach((r) => { c.beginPath(); c.arc(x(T.moments[siteOf[r]]), y(i), Math.max(0.8, Math.min(3.2, h * 0.3)), 0, 7);
      c.fill(); });
    c.globalAlpha = 1; c.textAlign = "right"; c.fillStyle = state.atom === k ? accent : ink;
    if (named) c.fillText(String(k), left - 8, y(i));
  });
  if (state.site !== null) { c.strokeStyle = accent; c.lineWidth = 1; c.beginPath();
    c.moveTo(x(T.moments[state.site]), top); c.lineTo(x(T.moments[state.site]), bottom); c.stroke(); }
  const living = T.alive.filter((p) => p > 0.5).length;
  $("lives-caption").textContent = `${plural(n, word())} from when each was first seen to when it was last seen; a dot is a site that holds it. Dashed: not seen since, paler the less likely it is that it still lives. ${plural(living, word())} probably live${living === 1 ? "s" : ""} at ${T.newest}.`;
}
const lifeAt = (event) => { const i = Math.floor((event.clientY - $("lives").getBoundingClientRect().top - TL.top) / TL.h);
  return TL.rows && i >= 0 && i < TL.rows.length ? TL.rows[i] : null; };
const lifeText = (k) => `${word()} ${k}: ${S.time.first[k]} to ${S.time.last[k]}, ${plural(S.counts[k], "site")}\nlives at ${S.time.newest} with probability ${probability(S.time.alive[k])}${S.words ? `\n${S.words[k].slice(0, 6).map((w) => w[0]).join(", ")}` : ""}`;
function pathColumns() {
  const T = S.time;
  $("path-column").replaceChildren(...(T ? T.columns : []).map((name, i) => { const d = S.groups.features.indexOf(name);
    return el("option", { value: i }, d < 0 ? name : withUnit(d)); }));
}
function paths() {
  if (!S.time) return;
  const T = S.time, d = +$("path-column").value || 0, canvas = $("paths"), width = canvas.parentElement.clientWidth;
  const height = Math.min(520, Math.max(300, width * 0.5)), c = sized(canvas, width, height), own = S.columns.indexOf(T.columns[d]);
  const dots = S.members === null || own < 0 ? [] : S.members.map((m, r) => [T.moments[siteOf[r]], m[own], S.labels[r], r])
    .filter((p) => p[1] !== null && p[2] < S.K);
  const all = T.paths.flatMap((p) => p.values.map((v) => v[d])).concat(dots.map((p) => p[1]));
  const low = least_of(all), high = most_of(all), margin = (high - low || 1) * 0.06;
  const at = frame(c, [timeBox(), [low - margin, high + margin]], width, height, PAD,
    ["time", $("path-column").selectedOptions[0].text], timeTicks);
  c.save(); c.beginPath(); c.rect(PAD.left, PAD.top, width - PAD.left - PAD.right, height - PAD.top - PAD.bottom); c.clip();
  T.paths.forEach((p, k) => {
    const chosen = isLit(k), line = (values) => p.times.map((t, i) => at([t, values[i][d]]));
    const middle = line(p.values), above = line(p.high), below = line(p.low).reverse();
    c.strokeStyle = c.fillStyle = tint(k);
    c.globalAlpha = chosen ? 0.16 : 0.04; c.beginPath(); above.concat(below).forEach((q) => c.lineTo(...q)); c.fill();
    c.globalAlpha = chosen ? 1 : 0.15; c.lineWidth = 1.8; c.beginPath(); middle.forEach((q) => c.lineTo(...q)); c.stroke();
  });
  TP.dots = dots.map((p) => at(p)); TP.rows = dots.map((p) => p[3]);
  const size = dots.length > 4000 ? 1 : 2.4;
  dots.forEach((p, i) => { c.fillStyle = tint(p[2]); c.globalAlpha = isLit(p[2]) ? 0.85 : 0.1; c.beginPath();
    c.arc(...TP.dots[i], size, 0, 7); c.fill(); });
  c.restore(); c.globalAlpha = 1; c.textAlign = "left"; c.fillStyle = colour("ink");
  if (S.K <= 40) T.paths.forEach((p, k) => { const [px, py] = at([p.times.at(-1), p.values.at(-1)[d]]);
    if (isLit(k)) c.fillText(String(k), Math.min(px + 4, width - 14), py - 6); });
  $("paths-caption").textContent = `Where ${word()}s were, given all that was sent, and where they lie with probability ${100 * T.level} %${dots.length ? "; dots: what sites sent" : ""}.${T.columns.length > 1 ? " First in the list: the column in which they differ most." : ""} Matching and hyperparameters are taken as they were found.`;
}
function bindTime() {
  on("lives", "mousemove", (e) => { const k = lifeAt(e); tip(e, k === null ? "" : lifeText(k)); });
  on("lives", "click", (e) => { const k = lifeAt(e); if (k !== null) openAtom(k); });
  on("paths", "mousemove", (e) => { const i = nearest(e, $("paths"), TP.dots, 8); tip(e, i < 0 ? "" : `${memberText(TP.rows[i])}\n${S.time.names[siteOf[TP.rows[i]]]}`); });
  on("paths", "click", (e) => { const i = nearest(e, $("paths"), TP.dots, 8); if (i >= 0) openAtom(S.labels[TP.rows[i]]); });
  on("path-column", "change", paths);
  for (const id of ["lives", "paths"]) on(id, "mouseleave", (e) => tip(e, ""));
}
