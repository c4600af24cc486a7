// Places on the page that have an address: #step=4012, #run=ID&step=4012, #trace=ID.

function stepLink(run, n) {
  return "#" + new URLSearchParams(data.jobs.length > 1 ? { run, step: n } : { step: n });
}

// drawnOf is the trace of a step of a row, where one is drawn.
function drawnOf(run, spec, k) {
  const of = charts.find((c) => c.job === run && c.spec.step !== undefined && c.spec.step >= spec.xs[k] && c.spec.step < spec.xs[k] + spec.steps);
  return of && of.spec.trace;
}

// rowOf is the row of a chart's numbers that has a step, -1: none has.
function rowOf(spec, n) {
  const k = spec.xs.findLastIndex((x) => x <= n);
  return k >= 0 && n < spec.xs[k] + spec.steps ? k : -1;
}

let sought = ""; // a place that is not there yet
let found = null; // the step that was asked for: job and number

function isFound(spec, k) {
  return Boolean(spec.steps && found && found.job === spec.job && rowOf(spec.steps, found.n) === k);
}

// go shows what the address asks for, and says what is not there.
function go() {
  const wanted = new URLSearchParams(location.hash.slice(1));
  const trace = (wanted.get("trace") || "").toLowerCase();
  let there = true;
  told.replaceChildren();
  found = null;
  if (/^[0-9a-f]{32}$/.test(trace)) there = goTrace(trace);
  else if (/^\d{1,15}$/.test(wanted.get("step") || "")) there = goStep(wanted.get("run"), Number(wanted.get("step")));
  sought = there ? "" : location.hash;
  history.scrollRestoration = location.hash ? "manual" : "auto"; // a reload leads to the place, not to where the window was
}

function goTrace(id) {
  const f = document.getElementById("trace-" + id);
  if (!f) {
    told.append(words.noTrace.replace("%s", id), ...linksOut(id));
    return false;
  }
  drawn(f.chart);
  f.scrollIntoView({ block: "start" });
  return true;
}

function goStep(run, n) {
  const of = charts.filter((c) => c.spec.steps && (run === null || c.job === run));
  const chart = of.find((c) => rowOf(c.spec, n) >= 0);
  if (!chart) {
    const xs = of.flatMap((c) => [c.spec.xs[0], c.spec.xs[c.spec.xs.length - 1] + c.spec.steps - 1]);
    told.append(xs.length ? words.noStep.replace("%d", n).replace("%d", Math.min(...xs)).replace("%d", Math.max(...xs)) : words.noSteps);
    return false;
  }
  found = { job: chart.job, n };
  for (const e of document.querySelectorAll("tr.found")) e.classList.remove("found");
  chart.rows.fill();
  chart.rows.open = true;
  const row = chart.rows.querySelectorAll("tbody tr")[rowOf(chart.spec, n)];
  row.classList.add("found");
  chart.box.parentElement.scrollIntoView({ block: "start" });
  row.scrollIntoView({ block: "nearest" });
  return true;
}

addEventListener("hashchange", go);
go();
