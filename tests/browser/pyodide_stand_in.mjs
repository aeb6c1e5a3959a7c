// Stands in for Pyodide in the test of the live page: it fetches what it is asked for, and "runs" four kinds of lines.
export async function loadPyodide({ indexURL }) {
  const files = {};
  let say = () => {};
  const python = {
    loadedPackages: {},
    setStdout: ({ batched }) => { say = batched; },
    setStderr: () => {},
    FS: { writeFile: (name, bytes) => { files[name] = new TextDecoder().decode(bytes); } },
    async loadPackage(what, { errorCallback }) {
      for (const name of [what].flat()) {
        const url = name.endsWith(".whl") ? name : `${indexURL}${name}.stand-in`;
        const answer = await fetch(url);
        // As the real one does: a complaint, no exception.
        if (answer.ok) python.loadedPackages[url.split("/").pop().split(/[-.]/)[0]] = url;
        else errorCallback(`${answer.status} for ${url}`);
      }
    },
    async runPythonAsync(code) {
      if (code.includes("while True")) for (;;); // a worker can only be ended from outside then
      if (code.includes("raise")) throw new Error("Traceback (most recent call last):\nValueError: as asked");
      if (code.includes("mine.csv")) say(files["mine.csv"]);
      else say(`ran ${code.split("\n").length} lines with ${Object.keys(python.loadedPackages).sort().join(", ")}`);
    },
  };
  return python;
}
