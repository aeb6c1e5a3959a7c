"""The live page in a real browser, with a stand-in for Pyodide: it loads, runs, shows, stops, says what is missing."""

import shutil
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import darkmetrics as dm

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]
LIVE = ROOT / "docs/live"
STAND_IN = Path(__file__).parent / "pyodide_stand_in.mjs"
WHEEL = f"darkmetrics-{dm.__version__}-py3-none-any.whl"
RUNTIME = 'data-runtime="https://cdn.jsdelivr.net/pyodide/v314.0.7/full/"'


class Quiet(SimpleHTTPRequestHandler):
    extensions_map = SimpleHTTPRequestHandler.extensions_map | {".mjs": "text/javascript"}

    def log_message(self, *_):
        pass


@pytest.fixture
def site(tmp_path):
    """The page as a server has it, the stand-in where the page's own setting says."""
    shutil.copytree(LIVE, tmp_path, dirs_exist_ok=True)
    page = tmp_path / "page.html"
    text = page.read_text(encoding="utf-8")
    assert RUNTIME in text
    page.write_text(text.replace(RUNTIME, 'data-runtime="runtime/"'), encoding="utf-8")
    runtime = tmp_path / "runtime"
    runtime.mkdir()
    shutil.copy(STAND_IN, runtime / "pyodide.mjs")
    for name in ("numpy", "scipy", "narwhals"):
        (runtime / f"{name}.stand-in").touch()
    (tmp_path / WHEEL).touch()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield tmp_path, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def open_live(open_page, site):
    """The page, opened; `open_page` takes a path, which here is an address."""

    class Address(str):
        def as_uri(self):
            return str(self)

    return lambda **how: open_page(Address(f"{site[1]}/page.html"), **how)


def status(page, text):
    page.wait_for_function("text => document.getElementById('status').textContent.includes(text)", arg=text)
    return page.text_content("#status")


def run(page, code=None):
    if code is not None:
        page.fill("#code", code)
    page.click("#run")


def test_it_loads_the_packages_and_the_wheel_of_this_version_and_runs(open_live, site):
    page = open_live()
    run(page)
    status(page, "Done in")
    assert page.text_content("#output").strip() == "ran 10 lines with darkmetrics, narwhals, numpy, scipy"
    assert all(url.startswith(site[1]) for url in page.asked_for)
    assert [url for url in page.asked_for if url.endswith(".whl")] == [f"{site[1]}/{WHEEL}"]
    assert page.complaints == []


def test_its_examples_run_as_they_stand(open_live):
    page = open_live()
    for name in ("gaps", "reasons"):
        page.select_option("#example", name)
        seen: dict[str, object] = {}
        exec(page.input_value("#code"), seen)  # in this Python: what the page runs in its own
        assert "dm" in seen


def test_a_file_is_read_where_it_is_and_its_example_fits_it(open_live, tmp_path, monkeypatch, capsys):
    page = open_live()
    page.select_option("#example", "file")
    rows = "label,score\n" + "1,0.9\n0,0.2\n,0.7\n1,0.6\n0,0.4\n1,0.3\n" * 10
    page.set_input_files("#file", files=[{"name": "june.csv", "mimeType": "text/csv", "buffer": rows.encode()}])
    run(page)
    status(page, "Done in")
    assert page.text_content("#output").strip() == rows.strip()
    (tmp_path / "mine.csv").write_text(rows)
    monkeypatch.chdir(tmp_path)
    exec(page.input_value("#code"), {})
    assert "60 rows: 50 labeled, 10 missing" in capsys.readouterr().out


def test_an_error_of_the_code_is_shown_and_the_next_run_works(open_live):
    page = open_live()
    run(page, "raise ValueError")
    status(page, "It failed")
    assert "ValueError: as asked" in page.text_content("#output")
    run(page, "print(1)")
    status(page, "Done in")
    assert "ran 1 lines" in page.text_content("#output")


def test_what_never_ends_can_be_stopped(open_live):
    page = open_live()
    run(page, "while True: pass")
    status(page, "Running")
    page.click("#stop")
    status(page, "Stopped")
    run(page, "print(1)")
    status(page, "Done in")


@pytest.mark.parametrize(
    ("gone", "said"),
    [
        ("runtime/pyodide.mjs", "Python could not be loaded from"),
        ("runtime/scipy.stand-in", "scipy: not there"),
        (WHEEL, "The wheel could not be loaded from"),
    ],
)
def test_what_could_not_be_loaded_is_said_in_one_sentence(open_live, site, gone, said):
    (site[0] / gone).unlink()
    page = open_live()
    run(page)
    assert gone.split("/")[-1].split(".")[0] in status(page, said)
    assert page.is_enabled("#run")


@pytest.mark.parametrize("dark", [False, True])
def test_everybody_can_use_it(open_live, axe, dark):
    page = open_live(dark=dark, width=400)
    page.evaluate(axe)
    found = page.evaluate("async () => (await axe.run()).violations.map(one => one.id + ': ' + one.nodes[0].html)")
    assert found == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
