"""The pages in a real browser: a model is opened, executed and tuned as a person does it.

Needs the extra `browser` and Debian's chromium. Screenshots go to the folder in
TTCODEGEN_SCREENSHOTS, where it is set.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urljoin, urlsplit

import pytest

from ttcodegen.cli.ttcodegen import main as compile_main
from ttcodegen.explorer.server import Server
from ttcodegen.explorer.session import Command, Session
from ttcodegen.explorer.stages import Settings

pytest.importorskip("model_explorer", reason="needs the extra browser")
playwright = pytest.importorskip("playwright.sync_api", reason="needs the extra browser")

pytestmark = pytest.mark.slow

MODEL = Path(__file__).parents[2] / "examples" / "transformer" / "transformer.mlir"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
# The graph is drawn by the processor.
DRAWING = ("--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--no-sandbox")
PATIENCE = 300_000
"""Milliseconds: the machine may have little time for it, and a run builds a project."""
WINDOW = {"width": 1100, "height": 700}


@pytest.fixture
def server() -> Generator[Server]:
    made = Server(Session([MODEL.parent], Settings(optimize=1)), port=0)
    made.start()
    yield made
    made.close()


@pytest.fixture
def page(tmp_path: Path) -> Generator[Any]:
    if CHROMIUM is None:
        pytest.skip("needs chromium")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=[*DRAWING])
        # Our page runs no script but its own, which questions of a test are not.
        page = browser.new_page(viewport=WINDOW, bypass_csp=True)
        page.set_default_timeout(PATIENCE)
        yield page
        browser.close()


def keep_screenshot(page: Any, name: str) -> None:
    """Saves a screenshot of the page for people.

    Playwright's own method waits for a page that does not move, which takes minutes without a
    graphics card.
    """
    folder = os.environ.get("TTCODEGEN_SCREENSHOTS")
    if not folder:
        return
    session = page.context.new_cdp_session(page)
    taken = session.send("Page.captureScreenshot", {"format": "png", "optimizeForSpeed": True})
    path = Path(folder) / f"{name}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(base64.b64decode(taken["data"]))


def panes(page: Any) -> list[dict[str, Any]]:
    """States of the panes, as the page records them in its address."""
    (data,) = parse_qs(urlsplit(page.url).query)["data"]
    return json.loads(data)["uiState"]["paneStates"]


def expanded(page: Any) -> list[str]:
    """The open layers of the first pane."""
    return panes(page)[0]["deepestExpandedGroupNodeIds"]


def wait_for_graph(page: Any) -> None:
    page.wait_for_selector("webgl-renderer canvas.main")
    page.wait_for_selector("info-panel")
    page.wait_for_function("document.querySelector('info-panel').innerText.includes('node count')")


def reveal(page: Any, op: str) -> None:
    """Selects the first op of this name, and opens the layers around it.

    By way of the page's search: where a layer is drawn depends on the fonts of the machine.
    """
    page.fill("search-bar input", op)
    found = page.locator("search-bar").get_by_text(op, exact=True).first
    deadline = time.monotonic() + PATIENCE / 1000
    while not expanded(page) and time.monotonic() < deadline:
        # A page that is still drawing may miss it. With this key the node is selected as well.
        found.click(modifiers=["Alt"])
        page.wait_for_timeout(5_000)


def test_a_graph_is_opened_and_a_layer_expanded(server: Server, page: Any) -> None:
    page.goto(server.address(MODEL))
    wait_for_graph(page)
    reported = " ".join(page.inner_text("info-panel").split())
    assert "op node count 39" in reported
    assert "layer count 11" in reported
    assert expanded(page) == []
    reveal(page, "matmul")
    assert expanded(page) == ["attention/query___group___"]
    keep_screenshot(page, "graph")
    # From the op to its lines.
    with page.context.expect_page() as opened:
        page.locator("info-panel a.ttcodegen-lines").click()
    code = opened.value
    code.locator("li.chosen").first.wait_for(timeout=PATIENCE)
    assert "matmul(" in " ".join(code.locator("li.chosen").all_inner_texts())
    assert code.input_value("#file") == "src/transformer.cpp"


def follows(page: Any, pane: int, op: str, node: str, other: str) -> bool:
    """Returns whether a click on a node in a pane selects it in the other pane."""
    search = page.locator("search-bar").nth(pane)
    search.locator("input").fill(op)
    deadline = time.monotonic() + PATIENCE / 1000
    while time.monotonic() < deadline:
        # The search puts the node in the middle, and does not select it. A page that is still
        # drawing may miss it.
        search.get_by_text(op, exact=True).first.click()
        page.wait_for_timeout(3_000)
        page.locator("webgl-renderer canvas.main").nth(pane).click(force=True)
        page.wait_for_timeout(3_000)
        selected = [each["selectedNodeId"] for each in panes(page)]
        # The other pane may still show what an earlier click selected.
        if (selected[pane], selected[1 - pane]) == (node, other):
            search.locator("input").fill("")
            return True
    return False


def test_the_other_pane_follows_by_what_ops_were_made_of(server: Server, page: Any) -> None:
    graphs = server.session.graphs_of_stages(MODEL, ["source", "lowered"])
    page.set_viewport_size({"width": 1700, "height": 800})
    page.goto(server.address(MODEL, graphs))
    page.wait_for_function("document.querySelectorAll('webgl-renderer canvas.main').length === 2")
    page.wait_for_function(
        "Object.values(window.me_test?.renderers ?? {})[0]?.syncNavigationService"
        ".getSyncNavigationData()?.leftToRightMapping?.softmax"
    )
    # A fused op leads to the one that it became part of, which has another name.
    assert follows(page, 0, "softmax", "softmax", "matmul#2")
    page.wait_for_timeout(2_000)
    keep_screenshot(page, "stages")
    # And back, to the first of those that it was made of.
    assert follows(page, 1, "concatenate_heads", "concatenate_heads", "reshape#4")


def execute(page: Any) -> None:
    """Presses the button, and waits until the results are in the table."""
    page.evaluate("document.getElementById('status').textContent = ''")
    page.click("#execute")
    page.wait_for_function(
        "document.getElementById('status').textContent.startsWith('done')"
        " && !document.getElementById('execute').disabled"
        " && document.getElementById('summary').textContent !== ''"
    )
    assert page.inner_text("#error") == ""


def number(page: Any, row: Any, column: int, *, before: bool = False) -> float:
    """Value of a cell for the last run, or the one before it, once it has any."""
    deadline = time.monotonic() + PATIENCE / 1000
    while time.monotonic() < deadline:
        text = row.locator("td").nth(column).locator("div").nth(int(before)).inner_text()
        if text:
            return float(text.split()[-1])
        page.wait_for_timeout(500)
    raise AssertionError(f"column {column} stays empty")


def l1_bytes(server: Server, page: Any) -> float:
    """L1 bytes per core of the matmul, in the last execution of the page's session."""
    command = Command("node_data", str(MODEL), {}, delete=False)
    cookies = {cookie["name"]: cookie["value"] for cookie in page.context.cookies()}
    session = server.session_of(cookies["ttcodegen_session"])
    (found,) = (each for each in session.run(command) if each["metric"] == "l1_bytes")
    return found["data"]["lowered: block"]["results"]["attention_output"]["value"]


def row_of(page: Any, node: str) -> Any:
    return page.locator("#ops tr").filter(has=page.get_by_role("link", name=node, exact=True)).first


def test_the_level_is_chosen_on_the_page(server: Server, page: Any) -> None:
    page.goto(server.own_address(MODEL))
    row_of(page, "attention_output").wait_for()
    page.select_option("#optimize", "0")
    page.wait_for_function(
        "document.getElementById('error').textContent.includes('without the optimizer')"
    )
    page.select_option("#optimize", "2")
    row_of(page, "attention_output").wait_for()
    assert page.inner_text("#error") == ""


def test_a_model_is_executed_tuned_and_executed_again(server: Server, page: Any) -> None:
    page.goto(server.own_address(MODEL))
    row = row_of(page, "attention_output")
    row.wait_for()
    chosen = "l1" if "memory: l1" in row.inner_text() else "dram"
    other = {"l1": "dram", "dram": "l1"}[chosen]
    assert page.evaluate("document.documentElement.scrollWidth") <= WINDOW["width"]
    assert number(page, row, 1) > 0, "estimated before it was run"
    execute(page)
    before, taken = number(page, row, 1), l1_bytes(server, page)
    assert before > 0
    assert number(page, row, 2) > 0, "measured"
    assert row.locator("td").nth(1).locator(".before").inner_text() == "", "no run before"
    # The graph, coloured by what was found.
    page.click("#graph")
    wait_for_graph(page)
    page.get_by_text("estimated time on the card (us)").first.wait_for()
    keep_screenshot(page, "colours")
    # A decision, and what it changes.
    page.goto(server.own_address(MODEL))
    row = row_of(page, "attention_output")
    row.get_by_role("button", name="Choose").click()
    row.get_by_label("memory").select_option(label=other)
    row.get_by_text(f"memory: {other}").first.wait_for()
    execute(page)
    row = row_of(page, "attention_output")
    # The number of the run before is there when those of this one are. So small a product takes
    # as long either way; its result is in the other memory now.
    assert number(page, row, 1, before=True) == pytest.approx(before, abs=0.002)
    assert number(page, row, 2) > 0, "measured"
    assert number(page, row, 2, before=True) > 0, "measured in the run before"
    assert number(page, row, 3, before=True) > 0.999
    assert f"memory: {other}" in row.inner_text()
    assert (l1_bytes(server, page) > taken) == (other == "l1")
    keep_screenshot(page, "decisions")


def test_the_graph_of_a_project_is_beside_its_code(page: Any, tmp_path: Path) -> None:
    out = tmp_path / "transformer"
    assert compile_main([str(MODEL), "-o", str(out)]) == 0
    code = out / "src/transformer.cpp"
    before = "weights.feed_forward_norm.weight)"
    assert before in code.read_text()
    memory = ", std::nullopt, std::nullopt, ttnn::L1_MEMORY_CONFIG)"
    code.write_text(code.read_text().replace(before, f"{before[:-1]}{memory}"))
    made = Server(Session([tmp_path], Settings()), port=0)
    made.start()
    try:
        page.goto(made.address(out), wait_until="commit")
        beside = f"/ttcodegen/beside?{urlencode({'model': str(out)})}"
        page.goto(urljoin(page.url, beside), wait_until="commit")
        page.wait_for_function("window.frames.code?.document.querySelector('#edits tbody tr')")
        shown = page.frame("code")
        rows = [row.split("\t") for row in shown.inner_text("#edits tbody").split("\n")]
        (edited,) = (row for row in rows if row[0] == "feed_forward_norm")
        assert edited[1:2] + edited[4:] == ["ttnn.rms_norm", "memory l1"]
        assert float(edited[3]) <= float(edited[2])
        # What reads the result changes with it.
        assert len(rows) > 1
        assert shown.is_visible("#overrides")
        graph = page.frame("graph")
        graph.wait_for_selector("info-panel")
        graph.wait_for_function(
            "document.querySelector('info-panel').innerText.includes('feed_forward_norm')"
        )
        keep_screenshot(page, "beside")
    finally:
        made.close()
