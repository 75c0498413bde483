"use strict";
// Shows what /status tells, once a second while somebody looks. Everything that comes from there goes in
// as text; rows are kept by key, so that nothing flickers. History is kept in this page alone.
(() => {
  const EVERY_MS = 1000, KEPT = 120, SHOWN = 100, DAY = 86400000;
  const KINDS = ["answered", "refused", "limited", "failed"];
  const KIND_OF = {
    ok: "answered", upstream_error: "answered", rate_limited: "limited", client_gone: null,
    upstream_unreachable: "failed", upstream_reset: "failed", upstream_timeout: "failed",
    upstream_invalid: "failed", overloaded: "failed", draining: "failed", internal: "failed",
  };
  const kindOf = (outcome) => outcome in KIND_OF ? KIND_OF[outcome] : "refused";
  const $ = (id) => document.getElementById(id);
  const SVG = "http://www.w3.org/2000/svg";

  // --- Making and keeping elements ---------------------------------------------------------------

  function make(name, attributes = {}, ...children) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  }
  const say = (element, text) => {
    const wanted = String(text);
    if (element.textContent !== wanted) element.textContent = wanted;
  };
  const set = (element, name, value) => {
    if (value === null) element.removeAttribute(name);
    else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
  };
  const show = (element, whether) => { element.hidden = !whether; };

  /** Makes the children of a parent those of a list: one for each key, kept while the key is. */
  function keep(parent, items, keyOf, create, update) {
    const kept = parent.kept ||= new Map();
    const gone = new Set(kept.keys());
    let place = parent.firstElementChild;
    items.forEach((item, index) => {
      const key = String(keyOf(item, index));
      let row = kept.get(key);
      if (!row) { row = create(item); kept.set(key, row); }
      gone.delete(key);
      update(row, item);
      if (row.element === place) place = place.nextElementSibling;
      else parent.insertBefore(row.element, place);
    });
    for (const key of gone) { kept.get(key).element.remove(); kept.delete(key); }
  }

  function level() {
    const said = make("span", { class: "said" });
    const element = make("span", { class: "level" }, make("span", { class: "mark", "aria-hidden": "true" }), said);
    return { element, tell: (how, text) => { set(element, "data-level", how); say(said, text); } };
  }
  function gauge() {
    const fill = make("i"), said = make("span", { class: "said" });
    const element = make("div", { class: "gauge" }, make("span", { class: "track", "aria-hidden": "true" }, fill), said);
    return { element, tell: (part, text, title) => {
      const bounded = Math.min(1, Math.max(0, part || 0));
      fill.style.width = (bounded * 100).toFixed(1) + "%";
      set(element, "data-level", bounded >= 0.95 ? "bad" : bounded >= 0.75 ? "warn" : "well");
      set(element, "title", title || null);
      say(said, text);
    } };
  }
  function chart(width, height, classes, label) {
    const svg = document.createElementNS(SVG, "svg");
    const parts = { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": label };
    for (const [key, value] of Object.entries(parts)) svg.setAttribute(key, value);
    const path = (name) => { const it = document.createElementNS(SVG, "path"); it.setAttribute("class", name); svg.append(it); return it; };
    const base = path("base"), area = path("area"), lines = classes.map((name) => path("line " + name));
    base.setAttribute("d", `M0 ${height - 0.5}H${width}`);
    return { element: svg, tell: (series, atLeast) => {
      const top = Math.max(atLeast, ...series.flat().filter((it) => it !== null)) * 1.08;
      const x = (at) => (width * (KEPT - 1 - at) / (KEPT - 1)).toFixed(1);
      const y = (value) => (height - 1 - (height - 2) * value / top).toFixed(1);
      series.forEach((values, which) => {
        let line = "", under = "", last = null;
        values.forEach((value, at) => {
          if (value === null) { if (last !== null) under += `V${height}Z`; last = null; return; }
          const here = x(values.length - 1 - at);
          under += last === null ? `M${here} ${height}V${y(value)}` : `L${here} ${y(value)}`;
          line += `${last === null ? "M" : "L"}${here} ${y(value)}`;
          last = here;
        });
        // Nothing at all is what the base line says.
        set(lines[which], "d", values.some((it) => it > 0) ? line : "");
        if (which === 0) set(area, "d", last === null ? under : under + `V${height}Z`);
      });
    } };
  }

  // --- Numbers and times as people read them ----------------------------------------------------

  const whole = new Intl.NumberFormat("en");
  const number = (value) => value === null || value === undefined ? "–"
    : value >= 100 || Number.isInteger(value) ? whole.format(Math.round(value)) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
  const bytes = (count) => count < 1024 ? `${count} B` : count < 1048576 ? `${(count / 1024).toFixed(1)} KiB`
    : count < 1073741824 ? `${(count / 1048576).toFixed(1)} MiB` : `${(count / 1073741824).toFixed(1)} GiB`;
  function span(ms) {
    const s = Math.max(0, Math.floor(ms / 1000));
    if (s < 60) return `${s} s`;
    if (s < 3600) return `${Math.floor(s / 60)} min`;
    if (s < 172800) return `${Math.floor(s / 3600)} h`;
    return `${Math.floor(s / 86400)} d`;
  }
  const clock = (text) => { const at = new Date(text); return isNaN(at) ? String(text) : at.toLocaleTimeString("en-GB"); };
  const day = (text) => { const at = new Date(text); return isNaN(at) ? String(text) : at.toISOString().slice(0, 16).replace("T", " ") + " UTC"; };
  const ms = (value) => value === null ? "–" : `${number(value)} ms`;
  const words = (label) => String(label).replaceAll("_", " ");
  const plural = (count, one, many) => `${whole.format(count)} ${count === 1 ? one : many || one + "s"}`;

  // --- What is remembered ------------------------------------------------------------------------

  const ELSEWHERE = "no endpoint", ALL = " all";
  let status = null, seenAt = 0, failure = null, token = null, started = null, opened = new Date();
  let bounds = [];
  const histories = new Map();   // by endpoint: samples of counters and rates
  const refusals = new Map();    // by endpoint and outcome
  const totals = { inFlight: [] };

  function total(requests) {
    const all = { answered: 0, refused: 0, limited: 0, failed: 0 };
    for (const [outcome, count] of Object.entries(requests)) if (kindOf(outcome)) all[kindOf(outcome)] += count;
    return all;
  }
  /** The latency that a part of these is below, in ms; bucket by bucket. */
  function quantile(buckets, part) {
    const count = buckets.reduce((sum, it) => sum + it, 0);
    if (!count) return null;
    let below = 0, floor = 0;
    for (let at = 0; at < bounds.length; at++) {
      if (buckets[at] && below + buckets[at] >= count * part) return floor + (bounds[at] - floor) * (count * part - below) / buckets[at];
      below += buckets[at]; floor = bounds[at];
    }
    return floor;
  }
  const since = (now, then) => now.map((count, at) => Math.max(0, count - then[at]));

  function remember(name, requests, buckets, at, isSum) {
    let history = histories.get(name);
    const kinds = total(requests);
    const sample = { at, requests, kinds, buckets, rate: null, rates: null, p99: null };
    if (!history) histories.set(name, history = { samples: [] });
    const before = history.samples.at(-1);
    if (before) {
      const seconds = Math.max(0.001, (at - before.at) / 1000);
      sample.rates = Object.fromEntries(KINDS.map((kind) => [kind, Math.max(0, kinds[kind] - before.kinds[kind]) / seconds]));
      sample.rate = KINDS.reduce((sum, kind) => sum + sample.rates[kind], 0);
      if (buckets) {
        const near = history.samples[Math.max(0, history.samples.length - 5)];
        sample.p99 = quantile(since(buckets, near.buckets), 0.99);
      }
      for (const [outcome, count] of Object.entries(requests)) {
        const more = count - (before.requests[outcome] || 0);
        const kind = kindOf(outcome);
        if (more > 0 && kind && kind !== "answered" && !isSum) refused(name, outcome, kind, more);
      }
    }
    history.samples.push(sample);
    if (history.samples.length > KEPT) history.samples.shift();
    return history;
  }
  function refused(name, outcome, kind, more) {
    const key = JSON.stringify([name, outcome]);
    const now = Date.now();
    let entry = refusals.get(key);
    if (!entry || now - entry.at > 30000) {   // What was quiet for long is news again, and comes first.
      entry = { key, name, outcome, kind, count: entry ? entry.count : 0 };
      refusals.delete(key); refusals.set(key, entry);
    }
    entry.count += more; entry.at = now;
    if (refusals.size > 200) refusals.delete(refusals.keys().next().value);
  }
  /** What happened in the last so many seconds. */
  function lately(history, seconds) {
    const last = history.samples.at(-1);
    // At least to the sample before, however long nobody looked.
    const least = history.samples.at(-2) || last, found = history.samples.find((it) => it.at >= last.at - seconds * 1000 - 50);
    const from = found === last ? least : found;
    const kinds = Object.fromEntries(KINDS.map((kind) => [kind, Math.max(0, last.kinds[kind] - from.kinds[kind])]));
    const buckets = last.buckets ? since(last.buckets, from.buckets) : null;
    const time = (last.at - from.at) / 1000;
    return { kinds, buckets, rate: time > 0 ? KINDS.reduce((sum, kind) => sum + kinds[kind], 0) / time : null };
  }

  // --- What it means -----------------------------------------------------------------------------

  function load(upstream) {
    const parts = [
      [upstream.connections, upstream.max_connections, "connections"],
      [upstream.in_flight, upstream.max_in_flight, "requests at once"],
      [upstream.waiting, upstream.max_waiting, "waiting"],
    ].filter(([now, most]) => most > 0 && now !== null && now !== undefined);
    const full = parts.map(([now, most, what]) => ({ part: now / most, text: `${number(now)} of ${number(most)} ${what}` }));
    full.sort((one, other) => other.part - one.part);
    return { part: full.length ? full[0].part : 0, text: full.length ? full[0].text : "–", all: full.map((it) => it.text).join(", ") };
  }
  function health(upstream) {
    const last = upstream.last_failure;
    if (last && last.ago_ms < 60000) return ["bad", `failed ${span(last.ago_ms)} ago: ${last.cause}`];
    if (load(upstream).part >= 0.95) return ["warn", "full"];
    if (last && last.ago_ms < 600000) return ["warn", `failed ${span(last.ago_ms)} ago: ${last.cause}`];
    if (!upstream.active && !upstream.idle) return ["idle", "no connection open"];
    return ["well", "well"];
  }
  function expiry(certificate, now) {
    const left = new Date(certificate.not_after) - now;
    const days = Math.floor(left / DAY);
    if (left <= 0) return ["bad", `expired ${span(-left)} ago`];
    if (new Date(certificate.not_before) > now) return ["bad", "not valid yet"];
    if (days < 7) return ["bad", `${left < 2 * DAY ? span(left) : plural(days, "day")} left`];
    return [days < 30 ? "warn" : "well", `${plural(days, "day")} left`];
  }
  function troubles(s) {
    const found = [], now = new Date(s.now);
    const add = (how, text) => found.push({ how, text });
    if (!s.ready) add("bad", "Not ready: starting, or draining. Load balancers are told to send nobody.");
    const last = s.configuration.last_reload;
    if (last && last.result === "rejected")
      add("bad", `The last ${last.order || "reload"} was rejected at ${clock(last.at)}; generation ${s.configuration.generation} serves on.`);
    else if (last && last.order === "guard") add("bad", `The guard returned to an older configuration at ${clock(last.at)}.`);
    if (s.configuration.standing === "set_aside") add("warn", "What serves is an older configuration than the file says.");
    if ((s.workers_behind || []).length) add("warn", `Workers ${s.workers_behind.join(", ")} have yet to take up new listeners.`);
    for (const upstream of s.upstreams) {
      const [how, text] = health(upstream);
      if (how === "bad" || how === "warn") add(how, `Upstream ${upstream.name}: ${text}.`);
    }
    const expiring = new Map();
    for (const listener of s.listeners) for (const certificate of listener.certificates) {
      const [how, text] = expiry(certificate, now);
      if (how !== "well") expiring.set(certificate.file, [how, `Certificate ${certificate.names[0] || certificate.file}: ${text}.`]);
    }
    for (const [how, text] of expiring.values()) add(how, text);
    for (const file of Object.keys(s.refused_files || {})) add("bad", `What ${file} holds now is not in force.`);
    for (const endpoint of s.endpoints) {
      const history = histories.get(endpoint.name), { kinds } = lately(history, 60);
      const all = KINDS.reduce((sum, kind) => sum + kinds[kind], 0);
      if (kinds.failed && kinds.failed / all >= 0.01) add(kinds.failed / all >= 0.1 ? "bad" : "warn",
        `${endpoint.name}: ${number(kinds.failed)} of ${plural(all, "call")} failed in the last minute.`);
    }
    for (const [what, now, most] of [["requests in flight", s.requests_in_flight, s.most_requests_in_flight],
      ["bytes of bodies in memory", s.in_flight_bytes, s.most_in_flight_bytes],
      ["client connections", s.listeners.reduce((sum, it) => sum + it.connections, 0), s.most_connections]])
      if (most > 0 && now / most >= 0.8) add(now / most >= 0.95 ? "bad" : "warn", `${number(now)} of ${number(most)} ${what}.`);
    if (s.access_log_dropped) add("warn", `${plural(s.access_log_dropped, "line")} of the access log were lost since the start.`);
    if (s.configuration.warnings.length) add("warn", `${plural(s.configuration.warnings.length, "warning")} about the configuration.`);
    return found.sort((one, other) => (one.how === "bad" ? 0 : 1) - (other.how === "bad" ? 0 : 1));
  }

  // --- Showing it --------------------------------------------------------------------------------

  const tiles = {};
  function tile(key, title, classes) {
    if (!tiles[key]) {
      const value = make("span"), unit = make("small"), note = make("div", { class: "note" });
      const drawn = chart(240, 36, classes, `${title}, the last two minutes`);
      $("tiles").append(make("div", { class: "tile" }, make("h3", {}, title), make("div", { class: "value" }, value, unit), drawn.element, note));
      tiles[key] = { value, unit, note, drawn };
    }
    return tiles[key];
  }
  function fillTile(key, title, classes, value, unit, note, series, atLeast) {
    const it = tile(key, title, classes);
    say(it.value, value); say(it.unit, unit); say(it.note, note); set(it.note, "title", note);
    it.drawn.tell(series, atLeast);
  }
  function showTiles(s) {
    const all = histories.get(ALL), samples = all.samples, near = lately(all, 5), minute = lately(all, 60);
    const of = (kind) => samples.map((it) => it.rates && it.rates[kind]);
    const per = (kind) => near.rate === null ? null : near.kinds[kind] / Math.max(1, Math.min(5, samples.length - 1));
    fillTile("rate", "Requests", [""], number(near.rate), "/s", `${plural(KINDS.reduce((sum, kind) => sum + minute.kinds[kind], 0), "call")} in the last minute`, [samples.map((it) => it.rate)], 1);
    fillTile("refused", "Refused", ["refused", "limited second"], number(near.rate === null ? null : per("refused") + per("limited")), "/s",
      `${number(minute.kinds.refused + minute.kinds.limited)} last minute, ${number(minute.kinds.limited)} over a limit`, [of("refused"), of("limited")], 1);
    fillTile("failed", "Failed", ["failed"], number(per("failed")), "/s", `${number(minute.kinds.failed)} in the last minute`, [of("failed")], 1);
    set(tiles.failed.value, "data-level", minute.kinds.failed ? "bad" : "well");
    const buckets = lately(all, 10).buckets, p = (part) => quantile(buckets, part);
    fillTile("slow", "Latency p99", [""], number(p(0.99)), p(0.99) === null ? "" : "ms", `p50 ${number(p(0.5))} ms, p90 ${number(p(0.9))} ms, last 10 s`, [samples.map((it) => it.p99)], 1);
    fillTile("flight", "In flight", [""], number(s.requests_in_flight), `of ${number(s.most_requests_in_flight)}`,
      `${bytes(s.in_flight_bytes)} of bodies, ${plural(s.listeners.reduce((sum, it) => sum + it.connections, 0), "connection")}`, [totals.inFlight], 1);
  }

  let order = [], orderedAt = 0, orderedBy = "", isAll = false;
  const table = $("endpoint-rows");
  function chosen(s) {
    const wanted = $("filter").value.trim().toLowerCase(), by = $("order").value;
    const loads = new Map(s.upstreams.map((it) => [it.name, load(it)]));
    const views = s.endpoints.map((endpoint, at) => {
      const history = histories.get(endpoint.name), minute = lately(history, 60), near = lately(history, 5);
      const names = [...new Set(endpoint.contracts.map((it) => it.upstream))];
      const full = names.map((name) => ({ name, ...loads.get(name) })).sort((one, other) => (other.part || 0) - (one.part || 0))[0] || { part: 0, text: "–" };
      const recent = lately(history, 10), from = KINDS.some((kind) => recent.kinds[kind]) ? recent : minute;
      const p50 = quantile(from.buckets, 0.5), p99 = quantile(from.buckets, 0.99), k = minute.kinds;
      return { endpoint, history, minute, near, names, full, p50, p99, at,
        trouble: [k.failed, full.part >= 0.75 ? full.part : 0, k.limited, k.refused] };
    });
    // However many calls are over a limit somewhere: what failed comes first.
    const worse = (one, other) => one.trouble.reduce((found, count, at) => found || other.trouble[at] - count, 0);
    const keys = { rate: (it) => it.near.rate || 0, slow: (it) => it.p99 || 0, full: (it) => it.full.part || 0 };
    const isBusy = table.matches(":hover") || table.contains(document.activeElement);
    const key = `${by} ${s.configuration.generation} ${s.endpoints.length}`;
    if (key !== orderedBy || (!isBusy && Date.now() - orderedAt > 5000)) {
      const sorted = [...views];
      if (by === "name") sorted.sort((one, other) => one.endpoint.name.localeCompare(other.endpoint.name));
      else if (by === "trouble") sorted.sort((one, other) => worse(one, other) || one.at - other.at);
      else if (keys[by]) sorted.sort((one, other) => keys[by](other) - keys[by](one) || one.at - other.at);
      order = sorted.map((it) => it.endpoint.name); orderedAt = Date.now(); orderedBy = key;
    }
    const place = new Map(order.map((name, at) => [name, at]));
    views.sort((one, other) => place.get(one.endpoint.name) - place.get(other.endpoint.name));
    return views.filter(({ endpoint, names }) => !wanted ||
      [endpoint.name, endpoint.host || "", endpoint.path, ...names, ...endpoint.contracts.map((it) => it.name)].some((it) => it.toLowerCase().includes(wanted)));
  }
  const isOpen = new Set();
  function endpointRow({ endpoint }) {
    const open = make("button", { type: "button", class: "open", "aria-expanded": "false" });
    const where = make("span", { class: "sub" });
    const rate = make("td", { class: "number", "data-says": "requests/s" }), p50 = make("td", { class: "number", "data-says": "p50 ms" }), p99 = make("td", { class: "number", "data-says": "p99 ms" });
    const drawn = chart(128, 24, ["", "refused second", "failed"], ""), slow = chart(128, 24, [""], "");
    drawn.element.setAttribute("class", "spark"); slow.element.setAttribute("class", "spark");
    const bar = make("div", { class: "bar", "aria-hidden": "true" }), said = make("span", { class: "outcomes" });
    for (const kind of KINDS) bar.append(make("span", { "data-kind": kind }));
    const full = gauge();
    const element = make("tr", {}, make("th", { scope: "row" }, open, where), rate, make("td", { class: "chart" }, drawn.element), make("td", { class: "ends" }, bar, said), p50, p99,
      make("td", { class: "chart slow" }, slow.element), make("td", { class: "full", "data-says": "saturation" }, full.element));
    open.addEventListener("click", () => {
      if (!isOpen.delete(endpoint.name)) isOpen.add(endpoint.name);
      render();
    });
    return { element, open, where, rate, p50, p99, drawn, slow, bar, said, full };
  }
  function fillEndpoint(row, { endpoint, history, minute, near, names, full, p50, p99 }) {
    say(row.open, endpoint.name);
    set(row.open, "aria-expanded", isOpen.has(endpoint.name));
    say(row.where, `${endpoint.host || "*"}${endpoint.path} · ${endpoint.contracts.map((it) => it.name).join(", ")}${endpoint.report.length ? " · report: " + endpoint.report.join(", ") : ""}`);
    say(row.rate, number(near.rate)); say(row.p50, number(p50)); say(row.p99, number(p99));
    const rates = history.samples.map((it) => it.rate);
    const part = (sum) => history.samples.map((it) => it.rates && sum(it.rates));
    row.drawn.tell([rates, part((it) => it.refused + it.limited), part((it) => it.failed)], 1);
    row.slow.tell([history.samples.map((it) => it.p99)], 1);
    set(row.drawn.element, "aria-label", `requests per second of ${endpoint.name}, all and those not answered`);
    set(row.slow.element, "aria-label", `p99 of ${endpoint.name}, ms`);
    const all = KINDS.reduce((sum, kind) => sum + minute.kinds[kind], 0);
    [...row.bar.children].forEach((part) => {
      const count = minute.kinds[part.dataset.kind];
      part.style.flex = `${count} 0 ${count ? "3px" : "0px"}`;
      show(part, count > 0);
    });
    say(row.said, all ? KINDS.filter((kind) => minute.kinds[kind]).map((kind) => `${number(minute.kinds[kind])} ${kind === "limited" ? "over a limit" : kind}`).join(" · ") : "no calls");
    row.full.tell(full.part, full.part ? `${Math.round(full.part * 100)} %` : "0 %", `${full.name || ""}: ${full.all || full.text}`);
  }
  function detail({ endpoint, names }) {
    const pairs = [
      ...Object.entries(endpoint.requests).map(([outcome, count]) => [words(outcome), whole.format(count)]),
      ...[["p50", "p50_ms"], ["p90", "p90_ms"], ["p99", "p99_ms"]].map(([name, key]) => [name, ms(endpoint.latency[key])]),
      ["p99 of the dealer", ms(endpoint.upstream_latency.p99_ms)],
      ["upstream", names.join(", ")], ["quotas", endpoint.quotas.join(", ") || "none"],
      ...endpoint.contracts.map((it) => [it.name, `A2A ${it.a2a_version}`]),
    ];
    return pairs;
  }
  function showPairs(list, pairs) {
    keep(list, pairs, ([name], at) => `${name} ${at}`, () => {
      const name = make("dt"), value = make("dd");
      return { element: make("div", {}, name, value), name, value };
    }, (row, [name, value]) => { say(row.name, name); say(row.value, value); });
  }
  function showEndpoints(s) {
    const views = chosen(s), shown = isAll ? views : views.slice(0, SHOWN);
    say($("endpoints-count"), views.length === s.endpoints.length ? whole.format(views.length) : `${views.length} of ${s.endpoints.length}`);
    const rows = shown.flatMap((view) => isOpen.has(view.endpoint.name) ? [{ view }, { view, isDetail: true }] : [{ view }]);
    keep(table, rows, (it) => (it.isDetail ? "d " : "e ") + it.view.endpoint.name, (it) => {
      if (!it.isDetail) return endpointRow(it.view);
      const list = make("dl");
      return { element: make("tr", { class: "detail" }, make("td", { colspan: "8" }, make("p", { class: "sub" }, "Since the start"), list)), list };
    }, (row, it) => it.isDetail ? showPairs(row.list, detail(it.view)) : fillEndpoint(row, it.view));
    show($("endpoints-none"), !views.length);
    show($("more"), views.length > shown.length);
    say($("more"), `Show all ${views.length}`);
  }

  function showRefusals(s) {
    const counts = new Map(s.endpoints.map((it) => [it.name, it.requests])).set(ELSEWHERE, s.elsewhere);
    const recent = [...refusals.values()].reverse().slice(0, 30);
    keep($("refusal-rows"), recent, (it) => it.key, () => {
      const at = make("td"), name = make("td", { class: "name" }), how = level(), count = make("td", { class: "number" }), all = make("td", { class: "number" });
      return { element: make("tr", {}, at, name, make("td", {}, how.element), count, all), at, name, how, count, all };
    }, (row, it) => {
      say(row.at, clock(it.at)); say(row.name, it.name); say(row.count, number(it.count));
      row.how.tell(it.kind === "failed" ? "bad" : "warn", words(it.outcome));
      say(row.all, number((counts.get(it.name) || {})[it.outcome]));
    });
    show($("refusals-none"), !recent.length);
    say($("refusals-none"), `None since this page was opened at ${clock(opened)}.`);
  }
  function showCallers(s) {
    const used = (it) => it.tightest ? 1 - it.tightest.remaining / Math.max(1, it.tightest.most) : 0;
    const near = s.callers.filter((it) => used(it) >= 0.5 || it.refused > 0);
    keep($("caller-rows"), near, (it) => it.caller, () => {
      const name = make("th", { scope: "row", class: "name" }), full = gauge(), sub = make("span", { class: "sub" }), refused = make("td", { class: "number" });
      return { element: make("tr", {}, name, make("td", {}, full.element, sub), refused), name, full, sub, refused };
    }, (row, it) => {
      const tightest = it.tightest;
      say(row.name, it.caller); say(row.refused, number(it.refused));
      row.full.tell(used(it), tightest ? `${number(tightest.remaining)} of ${number(tightest.most)} left` : "full again");
      const by = tightest ? `${tightest.quota}${tightest.endpoint ? " at " + tightest.endpoint : ""}` : it.refused_by ? `last refused by ${it.refused_by}` : "";
      say(row.sub, tightest && tightest.full_in_ms ? `${by}, full again in ${span(tightest.full_in_ms + 999)}` : by);
    });
    show($("callers-none"), !near.length);
  }
  function showUpstreams(s) {
    keep($("upstream-rows"), s.upstreams, (it) => it.name, () => {
      const name = make("span", { class: "name" }), url = make("span", { class: "sub mono" }), how = level(), full = gauge();
      const cells = ["active", "idle", "waiting"].map(() => make("td", { class: "number" })), failures = make("td");
      return { element: make("tr", {}, make("th", { scope: "row" }, name, url), make("td", {}, how.element), make("td", {}, full.element), ...cells, failures), name, url, how, full, cells, failures };
    }, (row, it) => {
      say(row.name, it.name); say(row.url, it.url); row.how.tell(...health(it));
      const full = load(it); row.full.tell(full.part, full.text, full.all);
      ["active", "idle", "waiting"].forEach((key, at) => say(row.cells[at], number(it[key])));
      say(row.failures, Object.entries(it.failures).map(([cause, count]) => `${number(count)} ${cause}`).join(", ") || "none");
    });
  }
  function showListeners(s) {
    const now = new Date(s.now);
    const rows = s.listeners.flatMap((listener) => listener.certificates.length
      ? listener.certificates.map((certificate, at) => ({ listener, certificate, at })) : [{ listener, at: 0 }]);
    keep($("listener-rows"), rows, (it) => `${it.listener.name} ${it.at}`, () => {
      const cells = [make("th", { scope: "row" }), make("td", { class: "mono" }), make("td", { class: "number" }), make("td", { class: "name" })], how = level();
      const sub = make("span", { class: "sub" });
      return { element: make("tr", {}, ...cells, make("td", {}, how.element, sub)), cells, how, sub };
    }, (row, { listener, certificate, at }) => {
      const first = at === 0;
      say(row.cells[0], first ? listener.name : ""); say(row.cells[1], first ? listener.address : "");
      say(row.cells[2], first ? number(listener.connections) : "");
      say(row.cells[3], certificate ? [...certificate.names, ...certificate.addresses].join(", ") || certificate.file : "in clear");
      if (certificate) row.how.tell(...expiry(certificate, now)); else row.how.tell("idle", "–");
      say(row.sub, certificate ? (certificate.refused ? `its files: ${certificate.refused}` : `until ${day(certificate.not_after)}`) : "");
    });
    const files = Object.entries(s.refused_files || {});
    keep($("file-rows"), files, ([file]) => file, () => { const how = level(); return { element: make("li", {}, how.element), how }; },
      (row, [file, why]) => row.how.tell("bad", `${file}: ${why}`));
  }
  function problemText(it) {
    return `${it.file}${it.line ? `:${it.line}:${it.column}` : ""}: ${it.path ? it.path + ": " : ""}${it.what}`;
  }
  function showConfiguration(s) {
    const c = s.configuration;
    say($("file"), [c.file, ...(c.included || [])].join(", "));
    const standing = { served: "as the file says", rejected: "the file was rejected", set_aside: "older than the file" }[c.standing];
    say($("loaded"), `loaded ${day(c.loaded)}${standing ? ", " + standing : ""}`);
    keep($("warning-rows"), c.warnings, (it, at) => `${at} ${it.what}`, () => { const how = level(); return { element: make("li", {}, how.element), how }; },
      (row, it) => row.how.tell("warn", problemText(it)));
    const history = c.history || (c.last_reload ? [c.last_reload] : []);
    keep($("history-rows"), history, (it, at) => `${it.at} ${it.result} ${it.generation} ${history.length - at}`, () => {
      const how = level(), at = make("time"), problems = make("ul", { class: "problems" });
      how.element.append(at);
      return { element: make("li", {}, how.element, problems), how, at, problems };
    }, (row, it) => {
      const bad = it.result === "rejected", order = { rollback: "rollback", guard: "returned by the guard" }[it.order] || "reload";
      const text = bad ? (it.problems.length ? `${order} rejected: ${plural(it.problems.length, "problem")}` : `${order} rejected: ${it.text || "restart needed: [" + it.restart_needed.join("], [") + "]"}`)
        : `${order}: ${it.text || words(it.result)}`;
      row.how.tell(bad ? "bad" : it.order === "guard" ? "warn" : "well", it.guard ? `${text} (${it.guard.text})` : text);
      say(row.at, day(it.at)); set(row.at, "datetime", it.at);
      keep(row.problems, it.problems, (problem, at) => at, () => {
        const what = make("span"), hint = make("span", { class: "hint" });
        return { element: make("li", {}, what, hint), what, hint };
      }, (line, problem) => { say(line.what, problemText(problem)); say(line.hint, problem.hint || ""); });
    });
    show($("history-none"), !history.length);
  }
  function showFindings(s) {
    const findings = s.report_findings, isUsed = Boolean(findings && (findings.length || s.endpoints.some((it) => it.report.length)));
    show($("findings"), isUsed);
    if (!isUsed) return;
    keep($("finding-rows"), findings, (it) => JSON.stringify([it.endpoint, it.step, it.outcome, it.quota]), () => {
      const cells = ["name", "", "", "number", "", "name"].map((name) => make("td", name ? { class: name } : {}));
      return { element: make("tr", {}, ...cells), cells };
    }, (row, it) => [it.endpoint, it.step, words(it.outcome) + (it.quota ? ` (${it.quota})` : ""), number(it.count), day(it.last),
      it.callers.map((who) => `${who.caller} (${number(who.count)})`).join(", ")].forEach((text, at) => say(row.cells[at], text)));
    show($("findings-none"), !findings.length);
  }

  function icon(how) {
    const colour = { well: "%2323794f", warn: "%23b87a00", bad: "%23b3261e" }[how] || "%23808080";
    const shape = how === "warn" ? "M8 1l7 14H1z" : how === "bad" ? "M1 1h14v14H1z" : "M8 1a7 7 0 1 1 0 14a7 7 0 1 1 0-14";
    set($("icon"), "href", `data:image/svg+xml,%3Csvg xmlns='${SVG}' viewBox='0 0 16 16'%3E%3Cpath d='${shape}' fill='${colour}'/%3E%3C/svg%3E`);
  }
  function tellState(how, text) {
    set($("state"), "data-level", how); say($("state-text"), text);
    const marks = { warn: "▲ ", bad: "■ " }, title = `${marks[how] || ""}Forecourt: ${text}`;
    if (document.title !== title) document.title = title;
    icon(how);
  }
  function render() {
    document.body.classList.toggle("gone", Boolean(failure));
    const age = Date.now() - seenAt;
    say($("seen"), !seenAt ? "never" : age < 1900 ? "now" : `${span(age)} ago`);
    if (failure) tellState("bad", failure);
    if (!status || failure) return;
    const s = status, found = troubles(s), worst = found.length ? found[0].how : "well";
    tellState(worst, (s.ready ? "Ready" : "Not ready") + (found.length ? `, ${plural(found.length, "thing needs", "things need")} a look` : ", nothing needs a look"));
    say($("generation"), s.configuration.generation);
    say($("hash"), s.configuration.hash.replace("sha256:", "").slice(0, 12)); set($("hash"), "title", s.configuration.hash);
    say($("up"), span(new Date(s.now) - new Date(s.started))); say($("version"), s.version);
    show($("trouble-section"), found.length > 0);
    const most = found.length > 12 ? [...found.slice(0, 11), { how: found[11].how, text: `And ${found.length - 11} more.` }] : found;
    keep($("trouble"), most, (it) => it.text, () => { const how = level(); how.element = make("li"); how.element.append(make("span", { class: "mark", "aria-hidden": "true" }), make("span", { class: "said" })); return how; },
      (row, it) => { set(row.element, "data-level", it.how); say(row.element.lastElementChild, it.text); });
    showTiles(s); showEndpoints(s); showRefusals(s); showCallers(s); showUpstreams(s); showListeners(s); showConfiguration(s); showFindings(s);
    show($("lookup"), true);
  }

  function take(s) {
    const at = performance.now();
    if (s.started !== started) {   // Another process: its counters begin anew.
      started = s.started; histories.clear(); refusals.clear(); totals.inFlight.length = 0; opened = new Date();
    }
    bounds = s.latency_bounds_ms;
    const sum = {}, buckets = new Array(bounds.length + 1).fill(0);
    const join = (requests) => { for (const [outcome, count] of Object.entries(requests)) sum[outcome] = (sum[outcome] || 0) + count; };
    const names = new Set(s.endpoints.map((it) => it.name));
    for (const name of histories.keys()) if (!names.has(name) && name !== ALL && name !== ELSEWHERE) { histories.delete(name); histories.delete(ALL); }
    for (const endpoint of s.endpoints) {
      remember(endpoint.name, endpoint.requests, endpoint.latency.buckets, at);
      join(endpoint.requests); endpoint.latency.buckets.forEach((count, place) => { buckets[place] += count; });
    }
    remember(ELSEWHERE, s.elsewhere, null, at); join(s.elsewhere);
    remember(ALL, sum, buckets, at, true);
    totals.inFlight.push(s.requests_in_flight);
    if (totals.inFlight.length > KEPT) totals.inFlight.shift();
    status = s; seenAt = Date.now(); failure = null;
  }

  // --- Asking ------------------------------------------------------------------------------------

  let timer = null, isAsking = false, waitsForToken = false;
  async function fetched(path) {
    const headers = { Accept: "application/json" };
    if (token) headers.Authorization = "Bearer " + token;
    return fetch(path, { headers, cache: "no-store", credentials: "omit", redirect: "error", signal: AbortSignal.timeout(5000) });
  }
  function askForToken(why) {
    token = null; waitsForToken = true; status = null; failure = null;
    show($("inside"), false); show($("ask"), true);
    if (why) say($("ask-why"), why);
    tellState("idle", "A token is needed");
    $("token").focus();
  }
  async function poll() {
    clearTimeout(timer);
    if (isAsking || waitsForToken || document.hidden) return;
    isAsking = true;
    const began = performance.now();
    try {
      const answer = await fetched("/status");
      if (answer.status === 401) askForToken(token ? "The gateway does not know this token." : null);
      else if (answer.status === 429 && status)   // The token let in before: somebody else's were wrong.
        failure = `Too many wrong tokens came from this address: shown again in ${answer.headers.get("Retry-After") || 60} s`;
      else if (answer.status === 429) askForToken(`Too many wrong tokens came from here. Try again in ${answer.headers.get("Retry-After") || 60} s.`);
      else if (!answer.ok) failure = "Not shown: " + ((await answer.text()).trim().slice(0, 300) || `it answers ${answer.status}`);
      else { take(await answer.json()); show($("ask"), false); show($("inside"), true); }
    } catch (error) {
      failure = error.name === "TimeoutError" ? "Gone: no answer within 5 s" : "Gone: it does not answer";
    }
    isAsking = false;
    render();
    if (!waitsForToken) timer = setTimeout(poll, Math.max(100, EVERY_MS - (performance.now() - began)));
  }
  $("ask-form").addEventListener("submit", (event) => {
    event.preventDefault();
    token = $("token").value.trim(); $("token").value = "";
    waitsForToken = false;
    poll();
  });
  $("lookup-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const id = $("lookup-id").value.trim();
    if (!id) return;
    let decisions = [];
    try {
      const answer = await fetched("/decisions/" + encodeURIComponent(id));
      if (answer.ok) decisions = (await answer.json()).decisions;
      say($("lookup-none"), answer.ok ? "" : (await answer.text()).trim());
    } catch (error) { say($("lookup-none"), "The gateway does not answer."); }
    const rule = (it) => it.key + (it.file ? ` (${it.file}:${it.line})` : " (default)");
    const pairs = (it) => Object.entries(it).filter(([, value]) => value !== null && String(value) !== "")
      .map(([key, value]) => [words(key), key === "rules" ? value.map(rule).join("; ") : typeof value === "object" ? JSON.stringify(value) : value]);
    keep($("lookup-found"), decisions, (it, at) => at, () => {
      const list = make("dl");
      return { element: make("div", { class: "card detail" }, list), list };
    }, (row, it) => showPairs(row.list, pairs(it)));
  });
  document.addEventListener("visibilitychange", () => poll());
  for (const id of ["filter", "order"]) $(id).addEventListener("input", () => { orderedBy = ""; isAll = false; if (status) render(); });
  $("more").addEventListener("click", () => { isAll = true; render(); });
  setInterval(() => { if (failure) render(); }, 1000);
  poll();
})();
