// Figures: the sharing matrix, maps, pictures of models, charts. What is shown is in `state`, `S` and `D` of page.js,
// which follows in the same script.

// ---- the sharing matrix ----
const M = {};
function matrix() {
  const J = D.sites.length, canvas = $("matrix"), crowd = S.counts.length > 400 && 0 < S.shared
    && S.shared < S.counts.length / 2;
  M.sites = state.order === "likeness" ? S.order.sites : range(J);
  M.atoms = state.order === "likeness" ? S.order.atoms : range(S.counts.length);
  if (crowd) M.atoms = M.atoms.filter((k) => S.counts[k] > 1 && k < S.K); // else shared ones would be too thin to see
  const A = M.atoms.length;
  $("pair").classList.toggle("beside", A * 34 + 150 < 0.42 * $("pair").clientWidth);
  const room = canvas.parentElement.clientWidth;
  const named = J <= 60;
  M.left = named ? Math.min(150, 14 + 6.5 * most_of(D.sites.map((s) => s.length)), room * 0.35) : 0;
  M.top = 18;
  M.w = Math.min(34, (room - M.left) / A); M.h = named ? Math.max(11, Math.min(26, 560 / J)) : Math.min(12, 560 / J);
  const width = M.left + M.w * A, height = M.top + M.h * J, c = sized(canvas, Math.max(width, 160), height + 4);
  const rank = [], place = [];
  M.sites.forEach((j, y) => { rank[j] = y; }); M.atoms.forEach((k, x) => { place[k] = x; });
  const R = Math.min(J, Math.max(1, Math.floor(M.h * J))), C = Math.min(A, Math.max(1, Math.floor(M.w * A)));
  const held = new Float32Array(R * C), sure = new Float32Array(R * C).fill(1), seen = new Set();
  S.labels.forEach((k, row) => {
    if (place[k] === undefined) return;
    const j = siteOf[row], key = j * A + k, bin = Math.floor(rank[j] * R / J) * C + Math.floor(place[k] * C / A);
    if (!seen.has(key)) { seen.add(key); held[bin]++; }
    if (S.confidence && S.confidence[row] !== null) sure[bin] = Math.min(sure[bin], S.confidence[row]);
  });
  const room_of = (J / R) * (A / C), gap = M.w > 6 && M.h > 6 ? 1 : 0, bw = M.w * A / C, bh = M.h * J / R;
  const [accent, muted, soft, ink] = ["accent", "muted", "soft", "ink"].map(colour);
  c.fillStyle = soft; c.fillRect(M.left, M.top, M.w * A, M.h * J);
  for (let y = 0; y < R; y++) for (let x = 0; x < C; x++) {
    const n = held[y * C + x];
    if (!n) continue;
    const k = M.atoms[Math.floor(x * A / C)], j = M.sites[Math.floor(y * J / R)];
    const off = (state.site !== null && state.site !== j)
      || (state.atom !== null && state.atom !== k);
    c.globalAlpha = Math.min(1, Math.sqrt(n / room_of)) * (off ? 0.3 : 1) * (room_of > 1 ? 1
      : 0.35 + 0.65 * sure[y * C + x]);
    c.fillStyle = tint(k);
    const x0 = Math.round(M.left + x * bw), y0 = Math.round(M.top + y * bh), x1 = Math.round(M.left + (x + 1) * bw),
      y1 = Math.round(M.top + (y + 1) * bh);
    c.fillRect(x0, y0, Math.max(1, x1 - x0 - gap), Math.max(1, y1 - y0 - gap));
    if (gap && sure[y * C + x] < SURE) { c.globalAlpha = 1; c.strokeStyle = ink; c.lineWidth = 1.5;
      c.strokeRect(x0 + 1, y0 + 1, x1 - x0 - gap - 2, y1 - y0 - gap - 2); }
  }
  c.globalAlpha = 1; c.textAlign = "right";
  if (named) M.sites.forEach((j, y) => { c.fillStyle = state.site === j ? accent : ink; let name = D.sites[j];
      while (name.length > 2 && c.measureText(name).width > M.left - 10) name = `${name.slice(0, -2)}…`;
      c.fillText(name, M.left - 6, M.top + (y + 0.5) * M.h); });
  c.textAlign = "center";
  const every = Math.max(1, Math.ceil(18 / M.w));
  M.atoms.forEach((k, x) => { if (x % every === 0) { c.fillStyle = state.atom === k ? accent : muted;
        c.fillText(String(k), M.left + (x + 0.5) * M.w, 9); } });
  if (state.site !== null && !named) { c.strokeStyle = accent; c.lineWidth = 1.5;
    c.strokeRect(0.75, M.top + rank[state.site] * M.h - 1, M.w * A - 1.5, M.h + 2); }
  if (document.activeElement === canvas) { c.strokeStyle = ink; c.lineWidth = 1.5;
    c.strokeRect(M.left + state.cell[1] * M.w, M.top + state.cell[0] * M.h, Math.max(3, M.w), Math.max(3, M.h)); }
  const each = room_of > 1
    ? ` A pixel is up to ${Math.ceil(room_of)} pairs; darker where more of them hold.` : S.confidence
      ? ` Paler where less sure; ringed below ${SURE}.` : "";
  $("matrix-caption").textContent = `${plural(J, "site")} down, ${plural(A, word())} across, each in its colour; grey: at one site alone${A > S.K ? "; pale grey: excluded" : ""}.${each}`
    + (crowd ? ` ${plural(S.counts.length - A, word())} that one site holds alone are not drawn.` : "");
}
function cellText(y, x) {
  const k = M.atoms[x], span = Math.max(1, Math.round(1 / M.h)), sites = M.sites.slice(y, y + span);
  if (sites.length > 1) return `${word()} ${k}: ${sites.filter((j) => holds(j, k)).length} of ${plural(sites.length, "site")} from ${D.sites[sites[0]]}`;
  const rows = rowsOf[k].filter((r) => siteOf[r] === sites[0]);
  const what = rows.length
    ? rows.map((r) => `its ${word()} ${rowIn[r]}${S.groups.members && S.groups.members[r] !== null ? `, ${sharesOf(S.groups.members[r])} ${S.groups.counted}` : ""}${S.confidence ? `, confidence ${probability(S.confidence[r])}` : ""}`).join("\n") : "not held";
  return `${D.sites[sites[0]]}, ${word()} ${k}${k >= S.K ? " (excluded)" : ""}\n${what}`;
}
function cellAt(event) {
  const box = $("matrix").getBoundingClientRect();
  const x = Math.floor((event.clientX - box.left - M.left) / M.w),
    y = Math.floor((event.clientY - box.top - M.top) / M.h);
  return x >= 0 && x < M.atoms.length && y < M.sites.length ? [Math.max(y, 0), x, y >= 0] : null;
}

// ---- maps: of principal axes, and of mixtures and processes ----
function bounds(points) {
  const box = [0, 1].map((i) => [least_of(points.map((p) => p[i])), most_of(points.map((p) => p[i]))]);
  return box.map(([a, b]) => { const margin = (b - a || 1) * 0.06; return [a - margin, b + margin]; });
}
const P = {};
function mapAxes() { // the two features in which groups differ most, or principal axes
  const share = S.map.explained.map((x) => Math.round(100 * x)),
    names = [...S.columns.map((name) => { const d = S.groups.features.indexOf(name); return d < 0 ? name : withUnit(d); }),
      `principal axis 1 (${share[0]} %)`, `principal axis 2 (${share[1]} %)`];
  for (const id of ["map-across", "map-up"]) $(id).replaceChildren(...names.map((n, i) => el("option", { value: i }, n)));
  const own = S.members !== null && S.best.length === 2 ? S.best : [names.length - 2, names.length - 1];
  $("map-across").value = own[0]; $("map-up").value = own[1];
  $("map-controls").hidden = S.members === null || S.words !== null || S.columns.length < 2;
}
function map() {
  const hidden = D.picture !== null && D.picture.type !== "transitions";
  $("map-section").hidden = hidden;
  if (hidden) return;
  const canvas = $("map"), width = canvas.parentElement.clientWidth,
    height = Math.min(520, Math.max(300, width * 0.62)), c = sized(canvas, width, height);
  const [a, b] = [+$("map-across").value, +$("map-up").value], names = [...$("map-across").options].map((o) => o.text),
    at = (own, axes, i) => i < S.columns.length ? own[i] : axes[i - S.columns.length];
  const members = S.map.members.map((axes, r) => [a, b].map((i) => at(S.members && S.members[r], axes, i)));
  const places = S.map.atoms.map((axes, k) => [a, b].map((i) => at(S.atoms[k], axes, i)));
  const seen = (p) => p[0] !== null && p[1] !== null;
  const inside = members.filter((p, r) => S.labels[r] < S.K && seen(p)).concat(places.slice(0, S.K).filter(seen));
  const box = bounds(inside.length ? inside : places.filter(seen)), on_page = frame(c, box, width, height, PAD, [names[a], names[b]]);
  const within = (p) => seen(p) ? on_page(p.map((v, i) => Math.max(box[i][0], Math.min(box[i][1], v)))) : [-99, -99];
  P.members = members.map(within); P.atoms = places.map(within);
  const [paper, ink] = ["paper", "ink"].map(colour);
  const many = P.members.length > 4000, lit = (r) => (state.atom === null || S.labels[r] === state.atom)
    && (state.site === null || siteOf[r] === state.site);
  const chosen = state.atom !== null || state.site !== null;
  for (const light of [false, true]) P.members.forEach((p, r) => {
    if (lit(r) !== light || p[0] < 0) return;
    const bright = light && chosen, k = S.labels[r];
    c.globalAlpha = bright ? 0.95 : chosen ? 0.15 : many ? 0.3 : 0.7;
    c.strokeStyle = c.fillStyle = tint(k);
    if (!many || bright) { c.lineWidth = 1; c.globalAlpha *= 0.5; c.beginPath(); c.moveTo(...p);
      c.lineTo(...P.atoms[k]); c.stroke(); c.globalAlpha *= 2; }
    if (many && !bright) c.fillRect(p[0] - 0.75, p[1] - 0.75, 1.5, 1.5);
    else { c.beginPath(); c.arc(p[0], p[1], 2.6, 0, 7); c.fill(); }
  });
  range(P.atoms.length).reverse().forEach((k) => { // what is excluded first, the others above it
    const p = P.atoms[k], on = state.atom === k || (state.site !== null && holds(state.site, k)),
      r = 4 + 6 * Math.sqrt(S.counts[k] / D.J);
    c.globalAlpha = chosen && !on ? 0.35 : 1;
    if (k >= S.K && P.atoms.length > 4000) { c.fillStyle = tint(k); c.fillRect(p[0] - 1, p[1] - 1, 2, 2); return; }
    c.beginPath(); c.arc(p[0], p[1], r, 0, 7); c.fillStyle = on ? tint(k) : paper; c.fill(); c.lineWidth = 2.2;
    c.strokeStyle = tint(k); c.stroke();
    if (S.K <= 60 && k < S.K) { c.fillStyle = on ? paper : ink; c.textAlign = "center";
      if (r >= 7) c.fillText(String(k), p[0], p[1] + 0.5);
      else { c.fillStyle = ink; c.textAlign = "left"; c.fillText(String(k), p[0] + r + 3, p[1]); } }
  });
  c.globalAlpha = 1;
  const axes = a >= S.columns.length && b >= S.columns.length, best = S.best.length === 2 && a === S.best[0] && b === S.best[1];
  $("map-caption").textContent = `${axes ? `First two principal axes of what sites sent${S.roots ? ", square roots of shares" : ", columns in standard units"}.` : best ? `The two columns in which ${word()}s differ most, beside how much sites differ within them.` : ""} Rings: ${S.time ? `${word()}s where they were last seen` : `fused ${word()}s`}, larger at more sites; dots: the sites’ own.${S.counts.length > S.K ? " What is excluded may lie beyond the edge." : ""}`;
}
function nearest(event, canvas, points, within) {
  const box = canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
  let best = -1, least2 = within * within;
  points.forEach((p, i) => { const d = (p[0] - x) ** 2 + (p[1] - y) ** 2; if (d <= least2) { least2 = d; best = i; } });
  return best;
}
const memberText = (r) =>
  `${D.sites[siteOf[r]]}, its ${word()} ${rowIn[r]}\n${word()} ${S.labels[r]}${S.confidence ? `, confidence ${probability(S.confidence[r])}` : ""}`;
const atomText = (k) =>
  `${word()} ${k}${k >= S.K ? " (excluded)" : ""}, ${plural(S.counts[k], "site")}${S.words ? `\n${S.words[k].slice(0, 6).map((w) => w[0]).join(", ")}` : ""}`;

function picture() {
  const Q = D.picture;
  $("picture-section").hidden = !Q;
  if (!Q) return;
  $("picture-section").classList.toggle("wide", Q.type === "transitions");
  if (Q.type === "transitions") return transitions(Q);
  const canvas = $("picture").querySelector("canvas")
    || $("picture").appendChild(el("canvas", { role: "img", "aria-label": "The fused model over two features" }));
  const extra = Q.type === "points" ? "value" : Q.features.length === 1 ? "weight" : null,
    axes = extra ? [...Q.features, extra] : Q.features;
  if (!$("across").options.length) {
    for (const id of ["across", "up"]) { $(id).append(...axes.map((name, i) => el("option", { value: i }, name)));
      on(id, "change", picture); }
    $("up").value = 1; $("picture-controls").hidden = axes.length < 3;
  }
  const [a, b] = [+$("across").value, +$("up").value], get = (G, i, d) => d < Q.features.length ? G.means[i][d]
    : Q.type === "points" ? G.values[i] : G.counts[i];
  const cov = (G, i, d, e) => d < Q.features.length && e < Q.features.length && G.covariances ? G.covariances[i][d][e]
    : 0;
  const width = canvas.parentElement.clientWidth, height = Math.min(520, Math.max(300, width * 0.62)),
    c = sized(canvas, width, height), corners = [];
  for (const G of [Q.members, Q.atoms]) G.labels.forEach((_, i) => { const [x, y] = [get(G, i, a), get(G, i, b)],
      [sx, sy] = [2 * Math.sqrt(cov(G, i, a, a)), 2 * Math.sqrt(cov(G, i, b, b))];
      corners.push([x - sx, y - sy], [x + sx, y + sy]); });
  const box = bounds(corners), at = frame(c, box, width, height, PAD, [axes[a], axes[b]]),
    kx = (width - PAD.left - PAD.right) / (box[0][1] - box[0][0]),
      ky = (height - PAD.top - PAD.bottom) / (box[1][1] - box[1][0]);
  const [paper, ink] = ["paper", "ink"].map(colour);
  const values = Q.type === "points" ? Q.atoms.values.concat(Q.members.values) : [0, 1], low = least_of(values),
    high = most_of(values);
  const thin = 0.5 * Math.min(1, Math.sqrt(60 / Math.max(1, Q.members.labels.length)));
  for (const [G, fused] of [[Q.members, false], [Q.atoms, true]]) G.labels.forEach((k, i) => {
    const [x, y] = at([get(G, i, a), get(G, i, b)]), on = state.atom === k;
    c.globalAlpha = state.atom !== null && !on ? 0.1 : fused ? 1 : on ? 0.5 : thin; c.lineWidth = fused ? 2.6 : 1;
    c.strokeStyle = c.fillStyle = tint(k);
    c.beginPath();
    if (G.covariances) {
      // the ellipse of two deviations is mean + 2 L (cos t, sin t), L the Cholesky factor
      const u = Math.sqrt(cov(G, i, a, a)), v = u > 0 ? cov(G, i, a, b) / u : 0,
        w = Math.sqrt(Math.max(0, cov(G, i, b, b) - v * v));
      for (let t = 0; t <= 48; t++) { const [p, q] = [2 * Math.cos(t * Math.PI / 24), 2 * Math.sin(t * Math.PI / 24)];
        c.lineTo(x + u * p * kx, y - (v * p + w * q) * ky); }
      c.stroke();
      if (fused) { c.globalAlpha *= Q.atoms.labels.length > 12 ? 0.04 : 0.1; c.fill(); }
    } else { const share = (G.values[i] - low) / (high - low || 1); c.arc(x, y, fused ? 6.5 : 3, 0, 7);
    c.globalAlpha *= 0.12 + 0.88 * share; c.fill(); c.globalAlpha = fused ? 1 : 0.4; c.stroke(); }
  });
  Q.atoms.labels.forEach((k, i) => { // numbers last, on a disc, so that they can be read
    const [x, y] = at([get(Q.atoms, i, a), get(Q.atoms, i, b)]), off = Q.atoms.covariances ? 0 : 13;
    c.globalAlpha = state.atom !== null && state.atom !== k ? 0.3 : 1; c.textAlign = "center";
    if (!off) { c.fillStyle = paper; c.beginPath(); c.arc(x, y, 8, 0, 7); c.fill(); }
    c.fillStyle = ink; c.fillText(String(k), x + off, y + 0.5);
  });
  c.globalAlpha = 1;
  const first = a === 0 && b === 1 && Q.features.length > 1;
  $("picture-caption").textContent = Q.type === "points" ? `Fused inducing points (large) and the sites' own (small); fuller where the function is larger: ${number(low)} to ${number(high)}.` : `Fused ${word()}s (bold) and the sites' own (thin): ellipses of two standard deviations${first ? `, in the two features in which ${word()}s differ most beside their width` : ""}.`;
}
function transitions(Q) {
  const n = Q.states.length, size = 460, R = 175, centre = size / 2, top = most_of(Q.visits),
    nodes = svg("svg", { viewBox: `0 0 ${size} ${size}`, role: "img",
        "aria-label": "Transition graph of the fused states" });
  const spot = (i) => [centre + R * Math.sin(2 * Math.PI * i / n), centre - R * Math.cos(2 * Math.PI * i / n)];
  Q.moves.forEach((row, i) => row.forEach((p, j) => {
    if (i === j || p < 0.02) return;
    const [a, b] = [spot(i), spot(j)], bend = 0.15,
      m = [(a[0] + b[0]) / 2 + bend * (b[1] - a[1]), (a[1] + b[1]) / 2 - bend * (b[0] - a[0])];
    const lit = state.atom === null || state.atom === Q.states[i];
    nodes.append(titled(svg("path", { d: `M${a}Q${m} ${b}`, fill: "none", stroke: tint(Q.states[i]),
            "stroke-width": 0.6 + 6 * p, "stroke-opacity": (lit ? 1 : 0.15) * (0.2 + 0.7 * p) }),
              `${Q.states[i]} to ${Q.states[j]}: ${probability(p)}`));
    const t = 0.72, dot = [0, 1].map((d) => (1 - t) ** 2 * a[d] + 2 * t * (1 - t) * m[d] + t * t * b[d]);
    if (p >= 0.05) nodes.append(svg("circle", { cx: dot[0], cy: dot[1], r: 1.5 + 3 * p, fill: tint(Q.states[i]),
          "fill-opacity": lit ? 0.9 : 0.15 }));
  }));
  Q.states.forEach((k, i) => {
    const [x, y] = spot(i), r = 9 + 11 * Math.sqrt(Q.visits[i] / (top || 1)),
      node = svg("g", { tabindex: 0, role: "button",
          "aria-label": `state ${k}, stays with probability ${probability(Q.moves[i][i])}` });
    node.append(svg("circle", { cx: x, cy: y, r, fill: colour("paper"), stroke: colour("line"), "stroke-width": 4 }),
      svg("circle", { cx: x, cy: y, r, fill: "none", stroke: tint(k), "stroke-width": 4, pathLength: 1,
          "stroke-dasharray": `${Q.moves[i][i]} 1`, transform: `rotate(-90 ${x} ${y})` }),
            svg("text", { x, y: y + 4, "text-anchor": "middle" }, String(k)));
    node.addEventListener("click", () => openAtom(k));
    node.addEventListener("keydown",
      (e) => { if (e.key === "Enter" || e.key === " ") { e.preventDefault(); openAtom(k); } });
    nodes.append(titled(node,
        `state ${k}: ${number(Q.visits[i])} visits, stays with probability ${probability(Q.moves[i][i])}, begins with ${probability(Q.starts[i])}`));
  });
  $("picture").replaceChildren(nodes); nodes.style.maxWidth = "34rem";
  $("picture-caption").textContent = "Fused states and how they follow each other (probabilities of 0.02 and more; dots mark the far end). The arc around a state is the probability to stay, its size how often it is visited.";
}

// ---- charts ----
function supports() {
  const J = D.J, bins = Math.min(J, 40), number_in = new Array(bins).fill(0), chart = $("supports"), W = 480, H = 150,
    base = H - 18;
  S.counts.slice(0, S.K).forEach((m) => { number_in[Math.min(bins - 1, Math.floor((m - 1) * bins / J))]++; });
  const top = Math.max(1, most_of(number_in)), w = Math.min(44, (W - 10) / bins),
    first = (b) => Math.ceil(b * J / bins) + 1, last = (b) => Math.ceil((b + 1) * J / bins);
  chart.setAttribute("viewBox", `0 0 ${W} ${H}`);
  chart.replaceChildren(svg("line", { x1: 0, x2: W, y1: base + 0.5, y2: base + 0.5, stroke: colour("line") }));
  number_in.forEach((n, b) => {
    const h = n / top * (base - 16), label = first(b) >= last(b) ? `${last(b)}` : `${first(b)}–${last(b)}`;
    chart.append(titled(svg("rect", { x: 4 + b * w, y: base - h, width: Math.max(1, w - 2), height: h,
            fill: colour("accent") }), `${plural(n, word())} at ${label} ${last(b) === 1 ? "site" : "sites"}`));
    if (n && bins <= 20) chart.append(svg("text",
        { x: 4 + (b + 0.5) * w - 1, y: base - h - 4, "text-anchor": "middle" }, n));
    if (bins <= 12 || b % Math.ceil(bins / 8) === 0) chart.append(svg("text",
        { x: 4 + (b + 0.5) * w - 1, y: H - 4, "text-anchor": "middle" }, bins === J ? label : last(b)));
  });
}
function objective() {
  const values = S.fit.history.filter((x) => x !== null), chart = $("history"), W = 480, H = 170;
  chart.setAttribute("viewBox", `0 0 ${W} ${H}`); chart.replaceChildren();
  $("history-caption").textContent = values.length < 2
    ? "" : `The objective (log probability of the matching plus log evidence) after each of ${values.length} steps: from ${number(values[0], 6)} to ${number(values.at(-1), 6)} nats.`;
  chart.toggleAttribute("hidden", values.length < 2);
  if (values.length < 2) return;
  const low = least_of(values), high = most_of(values), x = (i) => 6 + i / (values.length - 1) * (W - 12),
    y = (v) => H - 14 - (v - low) / (high - low || 1) * (H - 34);
  chart.append(svg("line", { x1: 0, x2: W, y1: H - 8, y2: H - 8, stroke: colour("line") }),
    svg("polyline", { points: values.map((v, i) => `${x(i).toFixed(1)},${y(v).toFixed(1)}`).join(" "), fill: "none",
        stroke: colour("accent"), "stroke-width": 1.8 }));
  if (values.length <= 80) values.forEach((v, i) =>
    chart.append(titled(svg("circle", { cx: x(i), cy: y(v), r: 2.6, fill: colour("accent") }),
        `step ${i}: ${number(v, 7)}`)));
  chart.append(svg("text", { x: x(0) + 8, y: y(values[0]) + 4 }, number(values[0], 6)),
    svg("text", { x: W - 4, y: y(values.at(-1)) - 8, "text-anchor": "end" }, number(values.at(-1), 6)));
}
