// Python in a worker: the runtime, the three packages that darkmetrics needs, then the wheel beside the page.
const NEEDED = ["numpy", "scipy", "narwhals"];
let ready = null;

const tell = (kind, more) => postMessage({ kind, ...more });

async function start({ runtime, wheel }) {
  let step = `Python could not be loaded from ${runtime}`;
  try {
    tell("status", { text: "Loading Python …" });
    const { loadPyodide } = await import(`${runtime}pyodide.mjs`);
    const python = await loadPyodide({ indexURL: runtime });
    python.setStdout({ batched: (text) => tell("said", { text }) });
    python.setStderr({ batched: (text) => tell("said", { text }) });
    step = `${NEEDED.join(", ")} could not be loaded from ${runtime}`;
    tell("status", { text: `Loading ${NEEDED.join(", ")} …` });
    await loaded(python, NEEDED, NEEDED);
    step = `The wheel could not be loaded from ${wheel}`;
    tell("status", { text: "Installing darkmetrics …" });
    await loaded(python, wheel, ["darkmetrics"]);
    return python;
  } catch (error) {
    tell("broken", { text: `${step}. (${error.message ?? error})` });
    throw error;
  }
}

// The runtime complains where a package does not come, and goes on.
async function loaded(python, what, names) {
  await python.loadPackage(what, { messageCallback: () => {}, errorCallback: () => {} });
  const absent = names.filter((name) => !(name in python.loadedPackages));
  if (absent.length) throw new Error(`${absent.join(", ")}: not there`);
}

async function run(code) {
  const python = await ready;
  tell("status", { text: "Running …" });
  const began = performance.now();
  try {
    await python.runPythonAsync(code);
    tell("done", { seconds: (performance.now() - began) / 1000 });
  } catch (error) {
    tell("failed", { text: error.message });
  }
}

onmessage = ({ data }) => {
  if (data.kind === "start") ready = start(data);
  if (data.kind === "file") ready = ready.then((python) => { python.FS.writeFile(data.name, data.bytes); return python; });
  if (data.kind === "run") run(data.code).catch(() => {}); // what went wrong at the start has been told
};
