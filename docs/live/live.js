// The page: it sends code to a worker, where Python runs, and shows what comes back. The page never waits.
const EXAMPLES = {
  gaps: `import numpy as np
import darkmetrics as dm

rng = np.random.default_rng(2)
y_score = rng.beta(1, 3, 1000)                           # what a model says of 1,000 transactions
fraud = rng.random(1000) < y_score
late = rng.random(1000) < np.where(fraud, 0.6, 0.2)      # frauds take longer to confirm
y_true = np.where(late, np.nan, fraud)

print(dm.evaluate(y_true, y_score, missingness="by_label"))`,
  reasons: `import numpy as np
import darkmetrics as dm

rng = np.random.default_rng(2)
y_score = rng.beta(1, 3, 1000)
fraud = rng.random(1000) < y_score
y_true = np.where(rng.random(1000) < np.where(fraud, 0.6, 0.2), np.nan, fraud)

for why in ("random", "by_label", "unknown"):
    law = dm.evaluate(y_true, y_score, missingness=why, metrics="precision")["precision"]
    low, high = law.interval(0.9)
    print(f"{why:<9} precision {low:.3f} to {high:.3f}")`,
  file: `import numpy as np
import darkmetrics as dm

# Choose a CSV file above. Here: a column "label" of 0, 1 or nothing, and a column "score".
table = np.genfromtxt("mine.csv", delimiter=",", names=True)
print(dm.evaluate(table["label"], table["score"]))`,
};

const find = (id) => document.getElementById(id);
const [code, output, status, run, stop, file] = ["code", "output", "status", "run", "stop", "file"].map(find);
const { runtime, wheel } = document.body.dataset;
let worker = null;
let chosen = null;

function show(example) {
  code.value = EXAMPLES[example];
}

function busy(yes) {
  run.disabled = yes;
  stop.disabled = !yes;
}

// Said when a step ends, so that a screen reader hears each of them once.
const heard = {
  status: ({ text }) => { status.textContent = text; },
  said: ({ text }) => { output.textContent += `${text}\n`; },
  done: ({ seconds }) => { status.textContent = `Done in ${seconds.toFixed(1)} s.`; busy(false); },
  failed: ({ text }) => { output.textContent += `${text}\n`; status.textContent = "It failed: see the output."; busy(false); },
  broken: ({ text }) => { status.textContent = text; forget(); },
};

function started() {
  const made = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
  made.onmessage = ({ data }) => heard[data.kind](data);
  made.onerror = () => heard.broken({ text: "The worker that runs Python could not be started." });
  made.postMessage({ kind: "start", runtime: new URL(runtime, location).href, wheel: new URL(wheel, location).href });
  return made;
}

function forget() {
  worker?.terminate();
  worker = null;
  busy(false);
}

run.onclick = () => {
  output.textContent = "";
  busy(true);
  worker ??= started();
  if (chosen) worker.postMessage({ kind: "file", name: "mine.csv", bytes: chosen });
  worker.postMessage({ kind: "run", code: code.value });
};
stop.onclick = () => { forget(); status.textContent = "Stopped. The next run starts Python anew."; };
file.onchange = async () => { chosen = file.files.length ? new Uint8Array(await file.files[0].arrayBuffer()) : null; };
find("example").onchange = (event) => show(event.target.value);
show("gaps");
