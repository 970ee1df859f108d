"""Looks at the dashboard of a real fleet with a real browser, as a person would.

    dashboard.py PATH-OF-REELHAUL

Starts `reelhaul up`, a slow origin, and servers of its own; needs Chromium and the packages playwright and
axe-playwright-python. With REELHAUL_SCREENSHOTS, each screen is saved in that directory, light, dark and as on a phone.
With REELHAUL_PAGE, the page's files come from that directory and not from the program: a change needs no build.
Prints a line for each check, and exits with 1 if one failed.
"""

import contextlib
import http.server
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import urllib.error
import urllib.request

import axe_playwright_python
from playwright.sync_api import expect, sync_playwright

BINARY = sys.argv[1]
CHROMIUM = os.environ.get("REELHAUL_CHROMIUM", "/usr/bin/chromium")
SCREENSHOTS = os.environ.get("REELHAUL_SCREENSHOTS")
PAGE = os.environ.get("REELHAUL_PAGE")
# How long anything may take that is awaited. Nothing waits that long on an idle machine.
PATIENCE = 60_000
MANY, MATCHING = 100_000, 10_000

expect.set_options(timeout=PATIENCE)


# MARK: An origin that is slow, so that a bar can be seen moving


class Origin:
    SIZE, RATE = 32 << 20, 1 << 20

    def __init__(self):
        origin = self
        self.lock, self.free_at = threading.Lock(), 0.0

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                if not self.path.startswith("/film"):
                    self.send_response(404)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
                first = int(asked[1]) if asked else 0
                last = min(int(asked[2] or origin.SIZE - 1) if asked else origin.SIZE - 1, origin.SIZE - 1)
                self.send_response(206 if asked else 200)
                if asked:
                    self.send_header("Content-Range", f"bytes {first}-{last}/{origin.SIZE}")
                self.send_header("Content-Length", str(last - first + 1))
                self.send_header("ETag", '"film"')
                self.send_header("Accept-Ranges", "bytes")
                self.send_header("Content-Type", "video/mp4")
                self.end_headers()
                left = last - first + 1
                with contextlib.suppress(OSError):
                    while left > 0:
                        count = min(left, 32 << 10)
                        origin.pause(count)
                        self.wfile.write(b"\0" * count)
                        left -= count

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def pause(self, count):
        """All connections together get RATE bytes a second."""
        with self.lock:
            self.free_at = max(self.free_at, time.monotonic()) + count / self.RATE
            wait = self.free_at - time.monotonic()
        time.sleep(max(0, wait))


# MARK: A fleet, and its servers


HELD_PORTS = []


def free_port():
    """A port that the system gives to nobody who asks for any, so that it is still free when it is used, and used again.

    A socket stays bound to it and never listens: that keeps out other tests that look for one, and not the server."""
    while True:
        one = socket.socket()
        with contextlib.suppress(OSError):
            one.bind(("127.0.0.1", random.randrange(20_000, 32_000)))
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            HELD_PORTS.append(one)
            return one.getsockname()[1]
        one.close()


class Fleet:
    def __init__(self, directory):
        self.directory, self.data = directory, f"{directory}/data"
        self.children = []
        self.start("up", "--workers", "2", "--data-dir", self.data, "--port", str(free_port()), log="up")
        self.settings = f"{self.data}/reelhaul.env"
        self.wait(lambda: os.path.exists(self.settings), "the fleet is ready")

    def start(self, *arguments, log):
        output = open(f"{self.directory}/{log}.log", "ab")
        environment = {k: v for k, v in os.environ.items() if not k.startswith("REELHAUL_")}
        if log != "up":
            environment["REELHAUL_CONFIG"] = self.settings
        child = subprocess.Popen([BINARY, *arguments], stdout=output, stderr=output, env=environment)
        self.children.append(child)
        return child

    def run(self, *arguments, **options):
        environment = {**os.environ, "REELHAUL_CONFIG": self.settings}
        done = subprocess.run([BINARY, *arguments], env=environment, capture_output=True, text=True, **options)
        assert done.returncode == 0, f"{arguments}: {done.stdout} {done.stderr}"
        return done.stdout.strip()

    def wait(self, is_so, words, seconds=PATIENCE / 1000):
        end = time.monotonic() + seconds
        while not is_so():
            for child in self.children:
                assert child.poll() in (None, 0, -signal.SIGKILL), self.logs()
            assert time.monotonic() < end, f"not in time: {words}\n{self.logs()}"
            time.sleep(0.05)

    def logs(self):
        return "\n".join(
            open(f"{self.directory}/{name}", errors="replace").read()[-2000:]
            for name in os.listdir(self.directory)
            if name.endswith(".log")
        )

    def serve(self, port, *options, path="/"):
        child = self.start("serve", "--port", str(port), *options, log=f"serve-{port}")
        base = f"http://127.0.0.1:{port}{path}"

        def is_there():
            with contextlib.suppress(OSError):
                return urllib.request.urlopen(base + "healthz", timeout=2).status == 200
            return False

        self.wait(is_there, "the server answers")
        return child, base

    def end(self):
        for child in reversed(self.children):
            if child.poll() is None:
                child.send_signal(signal.SIGINT)
        for child in reversed(self.children):
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(30)
                continue
            child.kill()
            child.wait()


def read(url):
    with urllib.request.urlopen(url, timeout=30) as answer:
        return json.load(answer)


# MARK: The browser


class Browser:
    """Pages that fail if they say anything on their console, throw, or ask anybody but their server."""

    def __init__(self, playwright):
        self.browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        self.complaints = []
        self.origins = set()

    def page(self, **options):
        context = self.browser.new_context(**{"viewport": {"width": 1360, "height": 850}, **options})
        context.set_default_timeout(PATIENCE)
        if PAGE:
            context.route("**/assets/*", lambda route: route.fulfill(path=f"{PAGE}/{route.request.url.rsplit('/')[-1]}"))
        page = context.new_page()
        page.on("pageerror", lambda error: self.complaints.append(f"{error}\n{error.stack}"))
        page.on("console", lambda message: self.complain(message))
        page.on("request", lambda request: self.origins.add(request.url.split("/")[2]))
        return page

    def stop_clock(self, page):
        """Its clock goes only as far as it is told, however long the page takes."""
        page.clock.install(time=0)
        page.clock.pause_at(1000)

    def complain(self, message):
        # The browser itself reports answers that are errors, which some checks ask for.
        if message.type in ("error", "warning") and "Failed to load resource" not in message.text:
            self.complaints.append(message.text)


def shares(page):
    """How much the bar of the open task shows."""
    return int(page.locator(".now .amount [role=progressbar]").get_attribute("aria-valuenow") or 0)


def cells(page):
    """How full the cells of the map are together."""
    return page.evaluate(
        "[...document.querySelectorAll('.now .map .full')].reduce((sum, cell) => sum + Number(cell.getAttribute('fill-opacity')), 0)"
    )


def state(page, *words):
    expect(page.locator(".now .badge").first).to_have_text(re.compile("|".join(words)))


# MARK: The checks, in order

CHECKS = []


def check(run):
    CHECKS.append(run)
    return run


@check
def a_first_download_is_watched_paused_resumed_and_canceled(s):
    page = s.browser.page()
    page.goto(s.base)
    expect(page.get_by_text("This fleet is ready.")).to_be_visible()
    weight = page.evaluate("performance.getEntriesByType('resource').reduce((sum, one) => sum + one.decodedBodySize, 0)")
    paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0]?.startTime")
    s.note(f"first screen: {weight} bytes, first paint after {paint:.0f} ms")
    assert weight < 150_000, weight
    page.get_by_label("URL to download").fill(f"{s.origin.url}/film.mp4")

    def answer_is_lost(route):
        route.fetch()
        route.abort()

    page.route("**/v1/tasks", answer_is_lost, times=1)
    page.get_by_role("button", name="Download").click()
    expect(page.locator("#toasts")).to_contain_text("cannot be reached")
    page.evaluate("for (let n = 0; n < 2; n += 1) document.querySelector('.welcome button').click()")
    expect(page.locator("h1")).to_have_text("film.mp4")
    assert len(read(f"{s.base}v1/tasks")["tasks"]) == 1
    state(page, "running")
    s.wait(lambda: shares(page) > 0 and cells(page) > 0, "the bar and the map have begun")
    share, full = shares(page), cells(page)
    s.wait(lambda: shares(page) > share and cells(page) > full, "the bar and the map move")
    page.get_by_role("button", name="Pause").click()
    state(page, "paused")
    share = shares(page)
    assert 0 < share < 100, share
    page.get_by_role("button", name="Resume").click()
    state(page, "running")
    s.wait(lambda: shares(page) > share, "it goes on from where it was")
    page.get_by_role("button", name="Pause").press("Enter")
    state(page, "paused")
    expect(page.get_by_role("button", name="Resume")).to_be_focused()
    page.keyboard.press("Enter")
    state(page, "running")
    expect(page.get_by_role("button", name="Pause")).to_be_focused()
    # Enter alone cancels nothing.
    page.get_by_role("button", name="Cancel").press("Enter")
    expect(page.get_by_role("dialog").get_by_role("button", name="Back")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("button", name="Cancel")).to_be_focused()
    state(page, "running")
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Cancel the task").click()
    state(page, "canceled")
    for event in ("submitted", "paused", "resumed", "canceled"):
        expect(page.locator(".life").get_by_text(event, exact=True).first).to_be_visible()
    assert page.locator("pre").first.inner_text().startswith(f"reelhaul download {s.origin.url}/film.mp4")
    page.get_by_role("link", name="Run a copy").click()
    expect(page.locator("[name=source]")).to_have_value(f"{s.origin.url}/film.mp4")
    page.context.close()


@check
def a_copy_has_what_the_task_has(s):
    options = ("--not-before", "2100-01-01T00:00:09.5Z", "--notify", "http://127.0.0.1:9/hook")
    options += ("--label", "note=b=c", "--rate", "20MB", "--retry-after", "1,2", "--bytes", "1kB")
    first = s.paused("copied", *options)
    page = s.browser.page(timezone_id="Asia/Kolkata")
    page.goto(f"{s.base}?view=task&id={first}")
    for words in ("--not-before 2100-01-01T00:00:09.5", "--notify http://127.0.0.1:9/hook"):
        expect(page.locator("pre[aria-label='Command line']")).to_contain_text(words)
    page.get_by_role("link", name="Run a copy").click()
    expect(page.locator("[name=notify]")).to_have_value("http://127.0.0.1:9/hook")
    page.get_by_text("Order and queue").click()
    page.get_by_label("add it without starting it").check()
    page.get_by_role("button", name="Submit", exact=True).click()
    page.get_by_role("link", name="Watch it").click()
    expect(page).to_have_url(re.compile("view=task&id="))
    second = re.search("id=(.*)", page.url)[1]
    s.wait(lambda: s.there(second), "the copy is there")
    own = ("id", "createdAt")
    told = [{name: value for name, value in s.there(id).items() if name not in own} for id in (first, second)]
    assert first != second and told[0] == told[1], told
    lost = page.evaluate(
        "async () => { const { hidden } = await import(new URL('assets/command.js', location.href));"
        " return hidden({ source: 'noop://host/x', spec: { notify: 'http://host/hook?key=***' } }); }"
    )
    assert lost == ["values of a URL's query (***)"], lost
    page.context.close()


@check
def a_copy_changes_nothing_silently(s):
    labels = {"a=b": "c", "note": "line1\nline2=x", "show": "s3"}
    task = {
        "kind": "download", "source": "http://127.0.0.1:9/film.mp4?sig=secret", "destination": "storage://default/copied.mp4",
        "notify": "http://127.0.0.1:9/hook?key=secret", "headers": {"X-Foo": "bar"}, "labels": labels, "paused": True,
    }  # fmt: skip
    first = s.submit(task)
    page = s.browser.page(viewport={"width": 1280, "height": 720})
    page.goto(f"{s.base}?view=task&id={first}")
    expect(page.locator("section[aria-label='Submit it again']")).to_contain_text('because a name has a "=": a=b.')
    expect(page.locator("pre[aria-label='Command line']")).not_to_contain_text("a=b")
    page.goto(f"{s.base}?view=submit&from={first}")
    source, hook, headers = (page.locator(f"[name={name}]") for name in ("source", "notify", "headers"))
    send = page.get_by_role("button", name="Submit", exact=True)
    expect(headers).to_have_value("X-Foo: ***")
    expect(page.locator(".notice")).to_contain_text("header fields X-Foo")
    for field, value in ((source, task["source"]), (hook, task["notify"]), (headers, "X-Foo: other")):
        send.click()
        expect(field).to_be_focused()
        expect(field).to_have_attribute("aria-invalid", "true")
        expect(page.locator("label", has=field)).to_contain_text("Put it back")
        field.fill(value)
        expect(field).not_to_have_attribute("aria-invalid", "true")
    page.get_by_label("add it without starting it").check()
    send.click()
    expect(page.locator(".answer")).to_contain_text("1 task submitted.")
    expect(page.locator(".answer")).to_be_focused()
    expect(page.locator(".answer")).to_be_in_viewport(ratio=1)
    page.get_by_role("link", name="Watch it").click()
    expect(page).to_have_url(re.compile("view=task&id="))
    second = re.search("id=(.*)", page.url)[1]
    s.wait(lambda: s.there(second), "the copy is there")
    told = s.there(second)
    assert first != second and told["labels"] == labels and told["spec"]["headers"] == ["X-Foo"], told
    page.context.close()


def form(s, then):
    """The page with the form, and what it has sent; `then` says what becomes of that."""
    page, posts = s.browser.page(), []
    page.route("**/v1/tasks", lambda route: (posts.append(route.request.post_data), then(route)))
    page.goto(f"{s.base}?view=submit")
    return page, posts


@check
def what_deletes_something_asks_first(s):
    page, posts = form(s, lambda route: route.continue_())
    page.get_by_role("button", name="Delete", exact=True).click()
    page.fill("[name=source]", "storage://default/deleted/")
    page.get_by_label(re.compile("with all it holds")).check()
    send, dialog = page.get_by_role("button", name="Submit", exact=True), page.get_by_role("dialog")
    send.click()
    expect(dialog).to_contain_text("storage://default/deleted/, with all it holds")
    page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    expect(send).to_be_focused()
    page.get_by_role("button", name="JSON lines").click()
    line = {"kind": "delete", "source": "storage://default/deleted.mp4"}
    lines = [json.dumps(line), json.dumps({"command": "submit", "task": line}), '{"kind":"noop","source":"noop://host/x","paused":true}']
    page.fill("[name=lines]", "\n".join(lines))
    page.get_by_role("button", name="Submit the lines").click()
    expect(dialog).to_contain_text("1 other line will be sent too.")
    assert not posts, posts
    dialog.get_by_role("button", name="Delete 2").click()
    expect(page.get_by_text("3 tasks submitted.")).to_be_visible()
    assert len(posts) == 1, posts
    page.context.close()


@check
def the_form_refuses_what_cannot_be_meant(s):
    page, posts = form(s, lambda route: route.abort())
    page.get_by_text("Transfer", exact=True).click()
    page.fill("[name=source]", "http://127.0.0.1:9/a.mp4\nhttp://127.0.0.1:9/b.mp4")
    send = page.get_by_role("button", name="Submit 2 tasks")
    for name, wrong, words, right in (
        ("destination", "storage://default/a.mp4", "Several URLs need a folder", "storage://default/films/"),
        ("rate", "fast", "no number of bytes", "20MB"),
        ("retryAfter", "5,x", "no numbers of seconds", "5,30"),
    ):
        field = page.locator(f"[name={name}]")
        field.fill(wrong)
        send.click()
        expect(field).to_be_focused()
        expect(page.locator("label", has=field)).to_contain_text(words)
        field.fill(right)
    expect(page.locator(".submit pre")).to_contain_text("--retry-after 5,30 --rate 20000000")
    assert not posts, posts
    page.context.close()


@check
def bytes_are_read_as_on_the_command_line(s):
    texts = {
        "0": 0, "500": 500, "10MiB": 10 << 20, "10mib": 10 << 20, "10 MiB": 10 << 20, "1.5GB": 1_500_000_000,
        "64k": 64000, "1kB": 1000, "64ki": 65536, "1T": 10**12, "7B": 7, "0.5KiB": 512, "2P": 2 * 10**15,
        **dict.fromkeys(("", "-1", "x", "1x", "1.", ".5", "1KB2", "1..2", "MiB", "1 2", "1.5", "0.4", "1.5B", "5iB")),
    }  # fmt: skip
    page = s.browser.page()
    page.goto(f"{s.base}?view=submit")
    told = page.evaluate(
        "async (texts) => { const { parseBytes } = await import(new URL('assets/format.js', location.href));"
        " return texts.map(parseBytes); }",
        list(texts),
    )
    assert dict(zip(texts, told)) == texts, told
    page.context.close()


@check
def what_a_task_says_is_text_and_its_numbers_are_exact(s):
    title = '<img src="x" onerror="document.title=\'hacked\'">'
    id = "01890000-0000-7000-8000-000000000001"
    parameters = '{"size":12345678901234567890,"share":1.50,"script":"</script><script>alert(1)</script>"}'
    task = {"id": id, "kind": "noop", "source": "noop://host/x", "paused": True, "labels": {"title": title}}
    line = json.dumps(task)[:-1] + f', "parameters": {parameters}}}'
    page = s.browser.page()
    page.goto(f"{s.base}?view=submit")
    page.get_by_role("button", name="JSON lines").click()
    page.fill("[name=lines]", f'{{"kind":"noop","sorce":"x"}}\n{line}')
    page.get_by_role("button", name="Submit the lines").click()
    expect(page.get_by_text("1 task submitted.")).to_be_visible()
    expect(page.locator(".refused li")).to_contain_text("Line 1")
    s.wait(lambda: s.there(id), "the task is there")
    page.get_by_role("link", name="Watch it").click()
    expect(page.locator("h1")).to_have_text(title)
    expect(page.locator("pre[aria-label=Parameters]")).to_contain_text('"size": 12345678901234567890')
    expect(page.locator("pre[aria-label=Parameters]")).to_contain_text('"share": 1.50')
    assert page.title() != "hacked"
    page.context.close()


@check
def many_tasks_are_filtered_and_the_list_stays_small(s):
    lines = f"{s.directory}/many"
    with open(lines, "w") as file:
        for number in range(MANY):
            queue = "bulk" if number < MATCHING else "other"
            task = {"kind": "noop", "source": f"noop://host/film-{number}", "queue": queue, "paused": True}
            file.write(json.dumps(task, separators=(",", ":")) + "\n")
    start = time.monotonic()
    s.fleet.run("batch", lines, timeout=240)
    s.wait(lambda: read(f"{s.base}v1/overview")["counts"]["paused"] >= MANY, "all tasks are there", 240)
    s.note(f"{MANY:,} tasks were submitted in {time.monotonic() - start:.0f} s")
    page = s.browser.page()
    page.goto(f"{s.base}?view=tasks")
    page.get_by_role("button", name=re.compile("^paused")).click()
    expect(page.locator(".body .row").first).to_be_visible()
    assert "state=paused" in page.url

    def scrolls():
        page.mouse.wheel(0, 5000)
        page.wait_for_timeout(50)
        return page.evaluate("document.querySelector('.body').offsetHeight") > 1500 * 48

    s.wait(scrolls, "more pages are read")
    rows = page.locator(".body .row").count()
    assert rows < 80, f"{rows} rows are in the page"
    film = page.locator(".body a.name").nth(15)
    film.scroll_into_view_if_needed()
    place = s.settled(lambda: page.evaluate("scrollY"), "the list stands still")
    film.click()
    expect(page.locator(".now")).to_be_visible()
    page.go_back()
    expect(page.locator(".body .row").first).to_be_attached()
    s.wait(lambda: abs(page.evaluate("scrollY") - place) < 50, "back leads to the same place")
    page.locator("[name=queue]").fill("bulk")
    page.locator("[name=queue]").press("Enter")
    expect(page).to_have_url(re.compile("queue=bulk"))
    page.locator("[name=text]").fill("film-123")
    expect(page.locator(".body .row")).to_have_count(11)
    oldest = read(f"{s.base}v1/tasks?queue=bulk&sort=createdAt&limit=1")["tasks"][0]
    page.locator("[name=text]").fill(oldest["id"])
    expect(page.locator(".named a")).to_have_text(oldest["source"].rsplit("/")[-1])
    expect(page.locator(".body .row")).to_have_count(1)
    page.keyboard.press("Control+k")
    page.keyboard.type(oldest["id"])
    page.get_by_role("option", name=re.compile(oldest["source"].rsplit("/")[-1])).click()
    expect(page).to_have_url(re.compile(f"view=task&id={oldest['id']}"))
    page.go_back()
    page.locator("[name=text]").fill("film-123")
    expect(page.locator(".body .row")).to_have_count(11)
    page.get_by_role("button", name="Save this view").click()
    page.get_by_role("dialog").locator("input").fill("my films")
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    page.get_by_role("link", name="Overview").first.click()
    page.get_by_role("link", name="my films").click()
    expect(page.locator(".body .row")).to_have_count(11)
    page.context.close()


@check
def all_that_match_are_acted_upon_and_counted_before(s):
    page = s.browser.page()
    page.goto(f"{s.base}?view=tasks&state=paused&queue=bulk")
    expect(page.locator(".body .row").first).to_be_visible()
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(page.get_by_text("1 selected")).to_be_visible()
    page.get_by_role("button", name=re.compile("Select all.*that match")).click()
    page.locator("[data-action=cancel]").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(f"This touches {MATCHING:,} tasks")
    dialog.get_by_role("button", name=f"Cancel {MATCHING:,} tasks").click()
    expect(dialog.get_by_role("button", name="Done")).to_be_visible(timeout=2 * PATIENCE)
    expect(dialog.locator("dd").nth(2)).to_have_text(f"{MATCHING:,}")
    dialog.get_by_role("link", name="Details").click()
    expect(page.locator(".badge", has_text="done")).to_be_visible()
    left = read(f"{s.base}v1/tasks?queue=bulk&state=paused&limit=1")["tasks"]
    others = read(f"{s.base}v1/overview")["counts"]["paused"]
    assert not left and others >= MANY - MATCHING, (left, others)
    page.context.close()


@check
def what_comes_after_the_question_is_not_acted_upon(s):
    early = [s.paused("asked") for _ in range(2)]
    page = s.browser.page()
    page.goto(f"{s.base}?view=tasks&queue=asked")
    page.locator(f'.body .row[data-id="{early[0]}"] input').click()
    page.get_by_role("button", name=re.compile("Select all.*that match")).click()
    page.locator("[data-action=cancel]").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("This touches 2 tasks")
    late = s.paused("asked")
    dialog.get_by_role("button", name="Cancel 2 tasks").click()
    expect(dialog.get_by_role("button", name="Done")).to_be_visible()
    states = [s.there(id)["state"] for id in (*early, late)]
    assert states == ["canceled", "canceled", "paused"], states
    page.context.close()


@check
def what_was_sent_is_told_of_although_its_dialog_was_closed(s):
    ids = [s.paused("closed") for _ in range(2)]
    page, held = s.browser.page(), []
    page.route("**/v1/operations", lambda route: held.append(route))
    page.goto(f"{s.base}?view=tasks&queue=closed")
    for id in ids:
        page.locator(f'.body .row[data-id="{id}"] input').click()
    page.locator("[data-action=cancel]").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel 2 tasks").click()
    s.wait(lambda: page.evaluate("1") and held, "the request is under way")
    expect(page.get_by_role("dialog")).to_contain_text("Sending")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    held[0].continue_()
    expect(page.locator(".toast")).to_contain_text("the operation has begun")
    expect(page.locator(".choice")).to_have_text("")
    s.wait(lambda: all(s.there(id)["state"] == "canceled" for id in ids), "they are canceled")
    page.context.close()


@check
def rows_that_leave_above_move_nothing_that_is_seen(s):
    ids = [s.submit({"kind": "noop", "source": "noop://host/x", "queue": "leaving", "paused": True}) for _ in range(60)]
    page = s.browser.page(viewport={"width": 1200, "height": 500})
    page.goto(f"{s.base}?view=tasks&queue=leaving&state=paused")
    expect(page.locator(f'.body .row[data-id="{ids[-1]}"]')).to_be_visible()
    page.mouse.move(5, 5)

    def place():
        """Where a row in the middle is in the window; far below if it is not on the page."""
        return page.evaluate("(id) => document.querySelector(`.body .row[data-id='${id}']`)?.getBoundingClientRect().top ?? 9999", ids[25])

    s.wait(lambda: page.evaluate("scrollBy(0, 60)") or place() < 300, "it is seen")
    before = place()
    height = page.evaluate("document.querySelector('.view .body').scrollHeight")
    for id in ids[50:]:
        s.fleet.run("cancel", id, "--wait")
    s.wait(lambda: page.evaluate("document.querySelector('.view .body').scrollHeight") <= height * 51 / 60, "ten rows have left")
    assert abs(place() - before) < 3, (before, place())
    page.context.close()


@check
def kinds_and_views_may_have_any_name(s):
    id = s.fleet.run("submit", "constructor", "--source", "noop://host/x", "--paused")
    s.wait(lambda: s.there(id), "the task is there")
    page = s.browser.page()
    page.goto(f"{s.base}?view=task&id={id}")
    expect(page.get_by_text("reelhaul submit constructor").first).to_be_attached()
    page.get_by_role("link", name="Run a copy").click()
    expect(page.locator("input[name=kind]")).to_have_value("constructor")
    page.goto(f"{s.base}?view=constructor")
    expect(page.locator(".figures-row")).to_be_visible()
    page.context.close()


@check
def a_task_that_leaves_the_list_leaves_the_selection(s):
    ids = [s.paused("chosen") for _ in range(3)]
    page = s.browser.page()
    page.goto(f"{s.base}?view=tasks&queue=chosen&state=paused")
    for id in ids:
        page.locator(f'.body .row[data-id="{id}"] input').click()
    page.mouse.move(5, 5)
    page.evaluate("document.activeElement.blur()")
    expect(page.locator(".choice")).to_contain_text("3 selected")
    s.fleet.run("cancel", ids[0], "--wait")
    expect(page.locator(".body .row")).to_have_count(2)
    expect(page.locator(".choice")).to_contain_text("2 selected")
    page.context.close()


@check
def boxes_show_what_is_selected(s):
    for _ in range(3):
        s.paused("boxes")
    page = s.browser.page()
    page.goto(f"{s.base}?view=tasks&queue=boxes")
    boxes = page.locator(".body .row input")
    expect(boxes).to_have_count(3)

    def shown():
        return [boxes.nth(index).is_checked() for index in range(3)]

    boxes.nth(0).click()
    assert shown() == [True, False, False], shown()
    page.get_by_role("button", name="Clear the selection").click()
    assert shown() == [False, False, False], shown()
    boxes.nth(0).click()
    expect(page.locator(".choice")).to_contain_text("1 selected")
    assert shown() == [True, False, False], shown()
    page.locator(".row.top input").click()
    expect(page.locator(".choice")).to_contain_text("3 selected")
    assert shown() == [True, True, True], shown()
    boxes.nth(1).click()
    expect(page.locator(".choice")).to_contain_text("2 selected")
    assert shown() == [True, False, True], shown()
    page.keyboard.press("Escape")
    expect(page.locator(".choice")).to_have_text("")
    assert shown() == [False, False, False], shown()
    page.context.close()


@check
def lines_that_were_not_sent_stay_and_are_submitted_once(s):
    page = s.browser.page()
    posts = []

    def second_is_lost(route):
        posts.append(route.request.headers["idempotency-key"])
        route.abort() if len(posts) == 2 else route.continue_()

    page.route("**/v1/tasks", second_is_lost)
    page.goto(f"{s.base}?view=submit")
    page.get_by_text("Order and queue").click()
    page.fill("[name=queue]", "sent")
    page.get_by_label("add it without starting it").check()
    source = page.locator("[name=source]")
    # Typing 5,001 lines takes a browser minutes.
    source.evaluate(
        "(area, text) => { area.value = text; area.dispatchEvent(new Event('input')); }",
        "\n".join(f"http://127.0.0.1:9/{number}" for number in range(5001)),
    )
    for lines in (5001, 0):
        page.get_by_role("button", name="Submit 5,001 tasks").click()
        expect(page.locator("section.panel [role=status]")).to_contain_text("5,000 of" if lines else "5,001 tasks submitted")
        assert len(source.input_value().split()) == lines
    assert posts[:2] == posts[2:], posts
    s.wait(lambda: {"queue": "sent", "count": 5001} in read(f"{s.base}v1/counts?by=queue")["counts"], "each is there once")
    page.context.close()


@check
def only_lines_that_were_refused_stay(s):
    page = s.browser.page()
    page.goto(f"{s.base}?view=submit")
    page.get_by_role("button", name="JSON lines").click()
    right, lines = '{"kind":"noop","source":"noop://host/x","queue":"lines","paused":true}', page.locator("[name=lines]")
    wrong = right.replace("source", "sorce")
    lines.fill(f"{right}\n{wrong}")
    for left in (wrong, ""):
        page.get_by_role("button", name="Submit the lines").click()
        expect(page.get_by_text("1 task submitted.")).to_be_visible()
        expect(page.locator(".refused li")).to_have_count(1 if left else 0)
        expect(lines).to_have_value(left)
        lines.fill(lines.input_value().replace("sorce", "source"))
    page.get_by_role("button", name="Submit the lines").click()
    s.wait(lambda: {"queue": "lines", "count": 2} in read(f"{s.base}v1/counts?by=queue")["counts"], "each is there once")
    page.context.close()


@check
def a_file_that_is_dropped_while_another_is_sent_waits(s):
    page = s.browser.page()
    posts = []

    def accept(route):
        lines = route.request.post_data.split("\n")
        posts.append((route.request.headers["idempotency-key"], json.loads(lines[0])["source"], len(lines)))
        if len(posts) == 1:
            drop("second")
            page.get_by_role("button", name="One form").click()
        route.fulfill(status=202, json={"results": [{"line": n + 1, "id": "x"} for n in range(len(lines))]})

    def drop(name):
        page.evaluate(
            "(name) => { const files = new DataTransfer(), line = JSON.stringify({ kind: 'noop', source: `noop://host/${name}` });"
            " files.items.add(new File([Array(5001).fill(line).join('\\n')], name));"
            " document.querySelector('.drop').dispatchEvent(new DragEvent('drop', { dataTransfer: files, bubbles: true })); }",
            name,
        )

    page.route("**/v1/tasks", accept)
    page.goto(f"{s.base}?view=submit")
    page.get_by_role("button", name="JSON lines").click()
    drop("first")
    expect(page.locator("section.panel [role=status]")).to_contain_text("5,001 tasks submitted.")
    expect(page.locator("#toasts")).to_contain_text("Others are being submitted.")
    key = posts[0][0].removesuffix("-0")
    assert posts == [(f"{key}-0", "noop://host/first", 5000), (f"{key}-5000", "noop://host/first", 1)], posts
    page.context.close()


@check
def what_failed_at_many_hosts_is_one_group(s):
    for host in range(1, 8):
        s.fleet.run("download", f"http://10.0.0.{host}/film.mp4", "--queue", "private")
    s.wait(lambda: read(f"{s.base}v1/overview")["failedToday"] >= 7, "they failed")
    page = s.browser.page()
    page.goto(f"{s.base}?view=failures")
    group = page.locator(".groups li.panel", has_text="address_refused")
    expect(group).to_contain_text("at 7 hosts")
    expect(group).to_contain_text("reelhaul retry --all --state failed --code address_refused")
    group.locator("summary").click()
    group.get_by_role("link", name="10.0.0.7").click()
    expect(page.locator(".body .row")).to_have_count(1)
    expect(page).to_have_url(re.compile("host=10.0.0.7"))
    page.get_by_role("link", name="Overview").first.click()
    expect(page.get_by_role("link", name=re.compile("7 address_refused at 7 hosts"))).to_be_visible()
    page.context.close()


@check
def each_reason_why_tasks_are_stuck_has_its_row(s):
    overview = read(f"{s.base}v1/overview")
    codes = ("http_503", "timeout", "connection_lost")
    overview["stuck"] = [
        {"reason": "schedule", "count": 2, "isAtLeast": False, "query": "state=retrying",
         "text": f"2 tasks failed with {code} and will be tried again."}
        for code in codes
    ]  # fmt: skip
    page = s.browser.page()
    page.route("**/v1/stream?*", lambda route: route.fulfill(
        content_type="text/event-stream", body=f"retry: 100\n\nevent: overview\ndata: {json.dumps(overview)}\n\n",
    ))  # fmt: skip
    page.goto(s.base)
    rows = page.locator("section[aria-label^=Stuck] li")
    expect(rows).to_have_text([re.compile(code) for code in codes])
    page.evaluate("document.querySelectorAll('section[aria-label^=Stuck] li').forEach((row) => { row.isKept = true; })")
    # Each answer ends at once, and the page draws the next one.
    for _ in range(3):
        with page.expect_request("**/v1/stream?*"):
            pass
    expect(rows).to_have_text([re.compile(code) for code in codes])
    assert rows.evaluate_all("(rows) => rows.every((row) => row.isKept)")
    page.context.close()


@check
def each_kind_without_a_worker_is_told_once(s):
    overview = read(f"{s.base}v1/overview")
    overview["kindsWithoutWorker"] = ["cut", "out", "timeout"]
    waits = "1 task waits for a worker with a handler for the kind cut: no live worker has one."
    overview["stuck"] = [
        {"reason": "worker", "count": 1, "isAtLeast": False, "query": "state=queued&kind=cut", "text": waits},
        # Its words have the name of a kind.
        {"reason": "cap", "count": 1, "isAtLeast": False, "query": "state=queued&kind=timeout",
         "text": "1 task waits for a free place: the limit of kind timeout is 1."},
    ]  # fmt: skip
    page = s.browser.page()
    page.route("**/v1/stream?*", lambda route: route.fulfill(
        content_type="text/event-stream", body=f"event: overview\ndata: {json.dumps(overview)}\n\n",
    ))  # fmt: skip
    page.goto(s.base)
    rows = page.locator("section[aria-label^=Stuck] li")
    expect(rows).to_have_text([re.compile(f"{words}[^a-z]") for words in ("kind cut", "kind timeout", "for out", "for timeout")])
    page.context.close()


# A body that takes three seconds after its head.
SLOW_BODY = """async () => {
  const { get } = await import(new URL("assets/api.js", location.href)), { clock } = await import(new URL("assets/format.js", location.href));
  const answer = window.fetch;
  window.fetch = async (...given) => {
    const response = await answer(...given), text = await response.text();
    return { ok: true, status: 200, headers: response.headers, text: () => new Promise((done) => setTimeout(() => done(text), 3000)) };
  };
  await get("v1/session");
  window.fetch = answer;
  return clock.ahead;
}"""


@check
def a_slow_body_does_not_set_the_clock_back(s):
    page = s.browser.page()
    page.goto(f"{s.base}?view=task")
    assert page.evaluate(SLOW_BODY) == 0
    page.context.close()


# Three nodes of which two have one key, drawn twice.
EQUAL_KEYS = """async () => {
  const { h, show } = await import(new URL("assets/dom.js", location.href)), list = h("ul");
  for (let n = 0; n < 2; n += 1) show(list, ["a", "b", "a"].map((key, index) => h("li", { "data-key": key }, String(index))));
  return list.textContent;
}"""


@check
def equal_keys_lose_no_row(s):
    page = s.browser.page()
    page.goto(f"{s.base}?view=workers")
    assert page.evaluate(EQUAL_KEYS) == "012"
    page.context.close()


def dead_letter(offset, **more):
    return {
        "id": f"0-{offset}", "at": f"2026-01-01T00:00:00.{offset:06}Z", "topic": "reelhaul.commands", "partition": 0,
        "offset": offset, "code": "malformed_json", "reason": "no JSON", "taskId": None, "text": "x", "bytes": 1,
        "isCut": False, **more,
    }  # fmt: skip


def dead_letters(s, pages):
    """Shows dead letters: `pages` has the letters and the next cursor of each cursor, and may change."""
    page = s.browser.page()

    def answer(route):
        cursor = (re.search("cursor=(.*)", route.request.url) or [None, ""])[1]
        letters, next = pages[cursor]
        route.fulfill(json={"deadLetters": letters, "hasMore": next is not None, "next": next})

    page.route("**/v1/dead-letters?*", answer)
    page.goto(f"{s.base}?view=dead-letters")
    return page


@check
def dead_letters_behind_many_that_were_dropped_are_found(s):
    pages = {"": ([], "0-900"), "0-900": ([], "0-400"), "0-400": ([dead_letter(7)], "0-1")}
    page = dead_letters(s, pages)
    expect(page.locator("#main")).to_contain_text("The newest ones were all replayed or dropped.")
    page.get_by_role("button", name="Read older ones").click()
    expect(page.locator(".groups li")).to_contain_text("malformed_json")
    # The first page comes again, and is empty as before.
    for _ in range(2):
        with page.expect_response("**/v1/dead-letters?limit=50"):
            pass
    expect(page.locator(".groups li")).to_have_count(1)
    pages[""] = ([], None)
    expect(page.locator("#main")).to_contain_text("There are no dead letters.")
    page.context.close()


@check
def more_new_dead_letters_than_a_page_has_hide_none(s):
    pages = {"": ([dead_letter(9)], "0-9"), "0-9": ([dead_letter(8)], "0-8")}
    page = dead_letters(s, pages)
    page.get_by_role("button", name="Read older ones").click()
    expect(page.locator(".groups li")).to_have_count(2)
    pages.update({"0-30": ([dead_letter(20)], "0-20"), "0-20": pages[""], "": ([dead_letter(30)], "0-30")})
    for count in range(1, 4):
        expect(page.locator(".groups li")).to_have_count(count)
        page.get_by_role("button", name="Read older ones").click()
    expect(page.locator(".groups li")).to_have_count(4)
    page.context.close()


@check
def a_long_dead_letter_is_replayed_whole(s):
    letter, sent = dead_letter(7, text="beg", isCut=True), []
    page = dead_letters(s, {"": ([letter], None)})
    page.route("**/v1/dead-letters/0-7", lambda route: route.fulfill(json=dead_letter(7, text="beginning and end")))

    def replay(route):
        sent.append(route.request.post_data)
        route.fulfill(status=202, json={})

    page.route("**/v1/dead-letters/0-7/actions/replay", replay)
    page.get_by_role("button", name="Replay…").click()
    expect(page.get_by_label("The command")).to_have_value("beginning and end")
    # To select text, the button may be let go beside the dialog.
    box = page.get_by_role("dialog").bounding_box()
    page.get_by_label("The command").hover()
    page.mouse.down()
    page.mouse.move(box["x"] - 20, box["y"] + 40)
    page.mouse.up()
    expect(page.get_by_label("The command")).to_have_value("beginning and end")
    page.get_by_role("button", name="Replay", exact=True).click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert sent == ["{}"], sent
    page.context.close()


@check
def an_empty_list_gets_its_first_task(s):
    for query in ("", "&sort=createdAt"):
        page = s.browser.page()
        page.goto(f"{s.base}?view=tasks&queue=empty{query}")
        expect(page.get_by_text("No task matches.")).to_be_visible()
        id = s.paused("empty")
        expect(page.locator(f'.body .row[data-id="{id}"]')).to_be_visible()
        s.fleet.run("remove", id, "--wait")
        expect(page.get_by_text("No task matches.")).to_be_visible()
        page.context.close()


@check
def a_dead_letter_of_a_topic_that_was_made_anew_is_another_one(s):
    letter = dead_letter(0, reason="former")
    page = dead_letters(s, {"": ([letter], None)})
    expect(page.locator(".groups li")).to_contain_text("former")
    letter.update(at="2026-01-02T00:00:00.000000Z", reason="latter")
    expect(page.locator(".groups li")).to_contain_text("latter")
    page.context.close()


@check
def rows_do_not_move_under_the_pointer(s):
    for _ in range(4):
        s.paused("other")
    page = s.browser.page()
    page.goto(f"{s.base}?view=tasks&queue=other")
    row = page.locator(".body .row").nth(2)
    expect(row).to_be_visible()
    row.hover()
    before = page.evaluate("document.querySelector('.body .row:hover').dataset.id")
    widths = page.evaluate("[...document.querySelectorAll('.row.top > *')].map((cell) => cell.getBoundingClientRect().width)")
    id = s.fleet.run("submit", "noop", "--source", "noop://host/new", "--queue", "other", "--paused")
    expect(page.get_by_role("button", name="1 new")).to_be_visible()
    assert page.evaluate("document.querySelector('.body .row:hover').dataset.id") == before
    page.mouse.move(5, 5)
    expect(page.locator(f'.body .row[data-id="{id}"]')).to_be_visible()
    assert widths == page.evaluate("[...document.querySelectorAll('.row.top > *')].map((cell) => cell.getBoundingClientRect().width)")
    # As they are seen, keys and screen readers find them.
    tops = page.evaluate("[...document.querySelectorAll('.body .row')].map((row) => row.getBoundingClientRect().top)")
    assert tops == sorted(tops), tops
    page.context.close()


# A server of tasks that come, go and change, and a reader of the list of those that match. Then the reader scrolls through
# the list, and has each task once.
MODEL = """async ({ seed, isUp }) => {
  const { Rows } = await import(new URL("assets/rows.js", location.href));
  const random = (most) => { seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0; return Math.floor(seed / 2 ** 32 * most); };
  const precedes = (a, b) => { const before = a.createdAt === b.createdAt ? a.id < b.id : a.createdAt < b.createdAt; return a !== b && (isUp ? before : !before); };
  let tasks = [], time = 0;
  const ordered = () => tasks.filter((task) => task.fits).sort((a, b) => precedes(a, b) ? -1 : 1);
  const create = (count) => { time += 1; for (let n = 0; n < count; n += 1) tasks.push({ id: random(2 ** 32).toString(16).padStart(8, "0"), createdAt: `2026-01-01T00:00:${String(time).padStart(9, "0")}Z`, fits: random(5) > 0 }); };
  const page = (limit, cursor) => {
    const all = ordered().filter((task) => !cursor || precedes(JSON.parse(cursor), task) && task.id !== JSON.parse(cursor).id), found = all.slice(0, limit), hasMore = all.length > limit;
    return { tasks: found.map((task) => ({ ...task })), hasMore, next: hasMore ? JSON.stringify({ id: found.at(-1).id, createdAt: found.at(-1).createdAt }) : null, searchedTo: null };
  };
  const answer = window.fetch;
  window.fetch = async (path) => { const query = new URL(path, location.href).searchParams; return new Response(JSON.stringify(page(Number(query.get("limit")), query.get("cursor")))); };
  create(random(600));
  const rows = new Rows(isUp ? { sort: "createdAt" } : {});
  await rows.more();
  for (let step = 0; step < 60; step += 1) {
    const what = random(8);
    if (what === 0) create(random(10));
    else if (what === 1) create(random(400));
    else if (what === 2) tasks = tasks.filter(() => random(20) > 0);
    else if (what === 3) for (const task of tasks) if (random(20) === 0) task.fits = !task.fits;
    const reading = what > 3 ? rows.more() : null;
    if (what === 4 || isUp) await rows.refresh(random(rows.rows.length));
    else rows.merge(page(100));
    if (what > 4) rows.apply(0);
    const first = ordered();
    if (what > 4 && !isUp && rows.rows.slice(0, 100).some((row, index) => first[index]?.id !== row.id)) return `after step ${step}, the first rows are wrong`;
    await reading;
  }
  for (let index = 0; index === 0 || index < rows.rows.length; index += 10) { await rows.refresh(index); rows.apply(index); if (index > rows.rows.length - 60) await rows.more(); }
  window.fetch = answer;
  const shown = rows.rows.map((row) => row.id), wanted = ordered().map((task) => task.id);
  const wrong = shown.findIndex((id, index) => id !== wanted[index]);
  return rows.isWhole && wrong < 0 && shown.length === wanted.length ? null : `${shown.length} rows of ${wanted.length}, whole: ${rows.isWhole}, wrong from ${wrong}`;
}"""


# Two tasks that matched do so no more. A search that looked at the tasks created at 5 and later tells of one of them.
BOUNDED = """async () => {
  const { Rows } = await import(new URL("assets/rows.js", location.href)), rows = new Rows({ text: "film" });
  Object.assign(rows, { isRead: true, hasMore: false });
  rows.merge({ tasks: [{ id: "b", createdAt: "8" }, { id: "a", createdAt: "3" }], hasMore: false });
  rows.apply(0);
  rows.merge({ tasks: [], hasMore: true, next: "n", searchedTo: "5" });
  rows.apply(0);
  return rows.rows.map((row) => row.id);
}"""


# Of ten thousand tasks, a few match, and a page searches through 3,000. Each changes, two go (one of a batch that two pages share),
# and one comes before all, whether the first page had a match or not. How many of those that are shown are as they were, once what is seen was read again?
SEARCHED = """async ({ first }) => {
  const { Rows } = await import(new URL("assets/rows.js", location.href)), rows = new Rows({ text: "film" }), answer = window.fetch;
  let tasks = Array.from({ length: 10000 }, (_, n) => ({ id: String(99999 - n), createdAt: String(Math.floor((99999 - n) / 70)), fits: (n % 1400 === 700 || n === 3010) && n >= first, step: 0 }));
  const page = (cursor) => {
    const from = cursor ? tasks.findIndex((task) => task.id === cursor.split("_")[1]) + 1 : 0, end = Math.min(from + 3000, tasks.length), hasMore = end < tasks.length;
    return { tasks: tasks.slice(from, end).filter((task) => task.fits).map((task) => ({ ...task })), hasMore, next: hasMore ? `0_${tasks[end - 1].id}` : null, searchedTo: hasMore ? tasks[end - 1].createdAt : null };
  };
  window.fetch = async (path) => new Response(JSON.stringify(page(new URL(path, location.href).searchParams.get("cursor"))));
  const again = async () => {
    rows.merge(page(null));
    for (let at = 0, reads = 0; at < rows.rows.length && reads < 10; reads += 1) at = await rows.refresh(at);
    rows.apply(0);
  };
  while (rows.hasMore) await rows.more();
  const all = rows.rows.length;
  for (const task of tasks) task.step = 1;
  tasks[4900].fits = tasks[3010].fits = false;
  await again();
  const left = rows.rows.length;
  tasks = [{ id: "999999", createdAt: "9999", fits: true, step: 1 }, ...tasks];
  for (let time = 0; time < 4; time += 1) await again();
  window.fetch = answer;
  return [all, left, rows.rows.length, rows.rows[0].id, rows.rows.filter((row) => row.task.step !== 1).length];
}"""


# Very many tasks come while somebody looks at the first ones, with the pointer on the list (`isPointed`) or elsewhere. Then
# the reader scrolls to the end.
GROWING = """async ({ isPointed }) => {
  const { Rows } = await import(new URL("assets/rows.js", location.href)), tasks = [], rows = new Rows({}), answer = window.fetch;
  const create = (count) => { for (let n = 0; n < count; n += 1) tasks.unshift({ id: "a", createdAt: String(tasks.length).padStart(9, "0") }); tasks.forEach((task) => { task.id = task.createdAt; }); };
  const page = (limit, cursor) => {
    const from = cursor ? tasks.findIndex((task) => task.id === cursor) + 1 : 0, found = tasks.slice(from, from + limit), hasMore = tasks.length > from + limit;
    return { tasks: found, hasMore, next: hasMore ? found.at(-1).id : null, searchedTo: null };
  };
  window.fetch = async (path) => { const query = new URL(path, location.href).searchParams; return new Response(JSON.stringify(page(Number(query.get("limit")), query.get("cursor")))); };
  create(500);
  await rows.more();
  let most = 0;
  for (let step = 0; step < 400; step += 1) {
    create(60);
    rows.merge(page(100));
    if (!isPointed) { rows.shorten(); rows.apply(0); }
    most = Math.max(most, rows.rows.length + rows.waiting);
  }
  rows.apply(0);
  const isFirst = rows.rows.slice(0, 100).every((row, index) => row.id === tasks[index].id);
  while (rows.hasMore) await rows.more();
  window.fetch = answer;
  return { most, isRight: isFirst && rows.rows.length === tasks.length && rows.rows.every((row, index) => row.id === tasks[index].id) };
}"""


@check
def a_list_that_is_looked_at_does_not_grow_for_ever(s):
    page = s.browser.page()
    page.goto(f"{s.base}?view=workers")
    for is_pointed in (False, True):
        told = page.evaluate(GROWING, {"isPointed": is_pointed})
        assert told["isRight"] and told["most"] < 7000, told
    page.context.close()


# Somebody asks for something else while the answer to the first question is on its way.
ASKED_ANEW = """async () => {
  const { poll } = await import(new URL("assets/ui.js", location.href));
  let question = "former", end = () => {};
  const shown = [], waiting = [], turn = () => new Promise((resolve) => setTimeout(resolve, 20));
  const read = () => { const asked = question; return new Promise((resolve) => waiting.push(() => resolve(asked))); };
  const again = poll({ onGone: (run) => { end = run; } }, 1000, read, (value) => shown.push(value));
  question = "new";
  again({ anew: true });
  // This one waits for the answer that is under way, which is shown.
  again();
  for (let n = 0; n < 5; n += 1) { await turn(); while (waiting.length) waiting.pop()(); }
  end();
  return shown;
}"""


@check
def a_chart_tells_its_values_however_often_it_is_drawn(s):
    page = s.browser.page()
    page.goto(s.base)
    plot = page.locator(".plot").first
    expect(plot.locator("path.line")).not_to_have_count(0)
    # It is drawn anew with each answer.
    page.wait_for_timeout(6000)
    box = plot.bounding_box()
    page.mouse.move(box["x"] + box["width"] - 12, box["y"] + box["height"] / 2)
    expect(plot.locator(".tip")).to_be_visible()
    s.fleet.run("submit", "noop", "--source", "noop://host/x")
    page.wait_for_timeout(6000)
    expect(plot.locator(".tip")).to_be_visible()
    page.context.close()


@check
def an_answer_to_a_former_question_is_not_shown(s):
    page = s.browser.page()
    page.goto(f"{s.base}?view=workers")
    assert page.evaluate(ASKED_ANEW) == ["new", "new"]
    page.context.close()


@check
def a_list_has_each_task_once_whatever_comes_and_goes(s):
    page = s.browser.page()
    page.goto(f"{s.base}?view=workers")
    for seed in range(1, 7):
        for is_up in (False, True):
            wrong = page.evaluate(MODEL, {"seed": seed, "isUp": is_up})
            assert not wrong, f"seed {seed}, oldest first: {is_up}: {wrong}"
    assert page.evaluate(BOUNDED) == ["a"]
    assert page.evaluate(SEARCHED, {"first": 0}) == [8, 6, 7, "999999", 0]
    assert page.evaluate(SEARCHED, {"first": 3005}) == [6, 4, 5, "999999", 0]
    page.context.close()


@check
def the_page_follows_a_server_that_is_killed_and_restarted(s):
    s.fleet.run("submit", "noop", "--source", "noop://host/early", "--queue", "other", "--paused")
    page = s.browser.page()
    page.goto(f"{s.base}?view=tasks&queue=other")
    expect(page.locator("#live")).to_have_text("live")
    expect(page.locator(".body .row").first).to_be_visible()
    s.server.kill()
    s.server.wait()
    expect(page.locator("#live")).to_have_text("cut off")
    expect(page.locator("#trouble")).to_contain_text("tried again by itself")
    expect(page.locator(".body .row").first).to_be_visible()
    id = s.fleet.run("submit", "noop", "--source", "noop://host/late", "--queue", "other", "--paused")
    s.server, _ = s.fleet.serve(s.port)
    expect(page.locator("#live")).to_have_text("live")
    expect(page.locator("#trouble")).to_have_text("")
    expect(page.locator(f'.body .row[data-id="{id}"]')).to_be_visible()
    page.context.close()


@check
def a_view_that_could_not_be_loaded_is_loaded_once_the_server_is_back(s):
    page = s.browser.page()
    is_away = True
    page.route("**/assets/fleet.js", lambda route: route.abort() if is_away else route.fallback())
    page.goto(s.base)
    expect(page.locator(".figures-row")).to_be_visible()
    page.get_by_role("link", name="Queues").click()
    expect(page.get_by_text("This view could not be loaded.")).to_be_visible()
    is_away = False
    expect(page.locator("h1")).to_have_text("Queues")
    page.context.close()


@check
def a_wide_list_scrolls_inside_its_panel(s):
    s.paused("wide")
    page = s.browser.page(viewport={"width": 1100, "height": 700})
    names = "state,name,queue,progress,rate,eta,created,kind,priority,size,host,attempt,worker,labels,finished"
    page.add_init_script(f"localStorage.setItem('reelhaul.columns', JSON.stringify('{names}'.split(',')))")
    page.goto(f"{s.base}?view=tasks&queue=wide")
    row = page.locator(".body .row").first
    expect(row).to_be_visible()
    edges = "(row) => [...row.children].map((cell) => Math.round(cell.getBoundingClientRect().left))"
    page.evaluate("document.querySelector('.sideways').scrollLeft = 1e6")
    expect(page.get_by_role("columnheader", name="Finished")).to_be_in_viewport(ratio=1)
    assert page.locator(".row.top").evaluate(edges) == row.evaluate(edges)
    page.evaluate("document.querySelector('.heads').scrollLeft = 0")
    expect(row.locator(".of-state")).to_be_in_viewport(ratio=1)
    for view in ("tasks", "workers", "queues", "hosts", "operations"):
        page.goto(f"{s.base}?view={view}")
        expect(page.locator("#main .loading", has_text="Loading")).to_have_count(0)
        for width in (320, 800, 900, 1024, 1100):
            page.set_viewport_size({"width": width, "height": 700})
            wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0, f"{view} is {wide} px wider than a window of {width}"
            for button in page.locator("td.act button").all():
                button.scroll_into_view_if_needed()
                assert button.evaluate("(it) => it.getBoundingClientRect().right <= innerWidth"), (view, width)
    page.context.close()


@check
def the_filters_show_what_the_address_says(s):
    page = s.browser.page()
    page.goto(f"{s.base}?view=tasks")
    kind, order = page.locator("select[name=kind]"), page.locator("select[name=sort]")
    kind.select_option("upload")
    expect(page).to_have_url(re.compile("kind=upload"))
    page.locator("details.more summary").click()
    order.select_option("createdAt")
    expect(page).to_have_url(re.compile("sort=createdAt"))
    page.get_by_role("link", name="Clear").click()
    expect(kind).to_have_value("")
    expect(order).to_have_value("")
    page.go_back()
    expect(order).to_have_value("createdAt")
    page.go_back()
    expect(order).to_have_value("")
    expect(kind).to_have_value("upload")
    page.locator("details.more summary").click()
    page.go_forward()
    expect(page.locator("details.more")).to_have_attribute("open", "")
    page.context.close()


@check
def an_address_that_names_no_task_leads_to_the_list(s):
    s.paused("named")
    page = s.browser.page()
    for query in ("?view=task", "?view=task&id="):
        page.goto(s.base + query)
        expect(page.locator("h1")).to_have_text("Tasks")
        expect(page.locator(".body .row").first).to_be_visible()
    page.context.close()


@check
def links_of_a_task_lead_to_it(s):
    source = "https://Host.Example:8443/film.mp4"
    options = ("--label", "note=a,b", "--label", "year=1999")
    id = s.fleet.run("download", source, "--queue", "linked", "--not-before", "2100-01-01T00:00:00Z", *options)
    s.wait(lambda: s.there(id), "the task is there")
    page = s.browser.page()
    for link in ("host.example", "note=a,b", "year=1999"):
        page.goto(f"{s.base}?view=task&id={id}")
        page.locator(".facts").get_by_role("link", name=link, exact=True).click()
        expect(page.locator(f'.body .row[data-id="{id}"]')).to_be_visible()
    hosts = page.evaluate(
        "async () => { const { host } = await import(new URL('assets/format.js', location.href));"
        " return ['s3://Films/a', 'http://u:p@[::1]:80/', 'tus+https://a.example?x@y', 'storage://default/x'].map(host); }"
    )
    assert hosts == ["films.s3", "::1", "a.example", ""], hosts
    page.context.close()


@check
def a_filter_that_the_server_refuses_is_not_called_a_cut(s):
    page = s.browser.page()
    page.goto(f"{s.base}?view=tasks&after=yesterday")
    expect(page.locator(".end")).to_contain_text('"after" must be')
    expect(page.locator("#live")).to_have_text("not live")
    expect(page.locator("#trouble")).to_contain_text("does not follow this view")
    page.get_by_role("link", name="Clear").click()
    expect(page.locator("#live")).to_have_text("live")
    expect(page.locator("#trouble")).to_have_text("")
    page.context.close()


# Streams that open or not, and then say nothing.
SILENT = """window.streams = [];
window.EventSource = class extends EventTarget {
  static OPEN = 1;
  static CLOSED = 2;
  readyState = 0;
  constructor() {
    super();
    window.streams.push(this);
    if (%s) setTimeout(() => { this.readyState = 1; this.dispatchEvent(new Event("open")); });
  }
  close() { this.readyState = 2; }
};"""


@check
def a_stream_that_says_nothing_is_begun_anew(s):
    for opens in ("true", "false"):
        page = s.browser.page()
        page.add_init_script(SILENT % opens)
        s.browser.stop_clock(page)
        page.goto(f"{s.base}?view=queues")
        expect(page.locator("h1")).to_have_text("Queues")
        page.clock.run_for(24_000)
        assert page.evaluate("streams.length") == 1
        page.clock.run_for(4_000)
        assert page.evaluate("streams.map((one) => one.readyState === 2)") == [True, False]
        expect(page.locator("#live")).to_have_text("live" if opens == "true" else "behind")
        page.context.close()


@check
def a_late_answer_does_not_call_a_new_stream_cut(s):
    page = s.browser.page()
    page.route("**/v1/stream?*", lambda route: route.fulfill(status=503), times=1)
    # The answers to the question whether the server is there.
    late = []
    page.route("**/v1/overview", lambda route: late.append(route))
    page.goto(f"{s.base}?view=queues")
    expect(page.locator("#live")).to_have_text("cut off")
    page.evaluate("history.pushState(null, '', '?view=tasks'); dispatchEvent(new PopStateEvent('popstate'))")
    expect(page.locator("#live")).to_have_text("live")
    assert late
    page.evaluate(
        "new MutationObserver(() => { window.isTold = true; })"
        ".observe(document.getElementById('live'), { childList: true, characterData: true, subtree: true })"
    )
    for route in late:
        with page.expect_response("**/v1/overview"):
            route.continue_()
    page.wait_for_timeout(500)
    assert page.evaluate("window.isTold") is None
    page.context.close()


@check
def a_tab_in_the_background_keeps_no_stream(s):
    page = s.browser.page()
    s.browser.stop_clock(page)
    page.add_init_script(SILENT % "true" + "setInterval(() => streams.at(-1)?.dispatchEvent(new Event('ping')), 10_000);")
    page.add_init_script("window.isHidden = true; Object.defineProperty(document, 'hidden', { get: () => isHidden });")

    def streams(is_hidden):
        page.evaluate("(is) => { window.isHidden = is; document.dispatchEvent(new Event('visibilitychange')); }", is_hidden)
        page.clock.run_for(2000)
        soon = page.evaluate("streams.map((one) => one.readyState)")
        page.clock.run_for(30_000)
        return soon, page.evaluate("streams.map((one) => one.readyState)")

    page.goto(f"{s.base}?view=queues")
    expect(page.locator("h1")).to_have_text("Queues")
    page.clock.run_for(30_000)
    assert page.evaluate("streams.length") == 0
    assert streams(False) == ([1], [1])
    assert streams(True) == ([1], [2])
    assert streams(False) == ([2, 1], [2, 1])
    page.context.close()


@check
def keys_find_select_and_open(s):
    for name in ("hay", "needle"):
        needle = s.fleet.run("submit", "noop", "--source", f"noop://host/{name}.mp4", "--paused")
    s.wait(lambda: s.there(needle), "it is there")
    page = s.browser.page()
    page.goto(s.base)
    expect(page.locator(".figures-row")).to_be_visible()
    page.keyboard.press("Control+k")
    page.keyboard.type("needle")
    expect(page.get_by_role("option", name=re.compile("^needle.mp4")).first).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text("needle")
    page.keyboard.press("g")
    page.keyboard.press("t")
    expect(page.locator(".body .row").first).to_be_visible()
    page.keyboard.press("j")
    page.keyboard.press("j")
    second = page.locator(".body .row").nth(1).get_attribute("data-id")
    s.wait(lambda: page.evaluate("document.activeElement.closest('.row')?.dataset.id") == second, "the second has the focus")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(second))
    page.keyboard.press("Escape")
    expect(page.locator(".body .row").first).to_be_visible()
    page.keyboard.press("j")
    page.locator("details.more summary").focus()
    page.keyboard.press("Enter")
    expect(page.locator("details.more")).to_have_attribute("open", "")
    page.keyboard.press("/")
    s.wait(lambda: page.evaluate("document.activeElement.name") == "text", "the search has the focus")
    page.context.close()


@check
def each_scope_is_offered_what_it_may_do(s):
    tokens = {}
    for scope in ("read", "write", "admin"):
        told = s.fleet.run("token", "create", "--name", f"a-{scope}", "--scope", scope)
        tokens[scope] = re.search(r"rhl_\S+", told)[0]
    port = free_port()
    _, base = s.fleet.serve(port, "--tokens", "required", "--path-prefix", "/videos/reelhaul", path="/videos/reelhaul/")
    for scope, token in tokens.items():
        page = s.browser.page()
        page.goto(f"{base}?view=workers")
        expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        page.get_by_label("Token").fill("rhl_wrong")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert").last).to_contain_text("not known")
        page.get_by_label("Token").fill(token)
        page.evaluate("window.isOfNobody = true")
        page.get_by_role("button", name="Sign in").click()
        expect(page.locator("tbody tr").first).to_be_visible()
        # Nothing that was read before is kept.
        assert page.evaluate("window.isOfNobody") is None
        expect(page.get_by_role("button", name="Drain")).to_have_count(2 if scope == "admin" else 0)
        expect(page.locator("#new")).to_be_visible(visible=scope != "read")
        page.goto(f"{base}?view=tasks&queue=other")
        expect(page.locator(".body .row").first).to_be_visible()
        boxes = page.locator(".body input[type=checkbox]")
        expect(boxes).to_have_count(0) if scope == "read" else expect(boxes.first).to_be_visible()
        if SCREENSHOTS and scope == "read":
            page.screenshot(path=f"{SCREENSHOTS}/signed-in-read.png")
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        page.context.close()


@check
def a_token_for_a_queue_is_not_led_to_what_it_may_not_see(s):
    s.paused("other")
    told = s.fleet.run("token", "create", "--name", "a-queue", "--scope", "write", "--queue", "other")
    _, base = s.fleet.serve(free_port(), "--tokens", "required")
    page = s.browser.page()
    page.goto(base)
    page.get_by_label("Token").fill(re.search(r"rhl_\S+", told)[0])
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator(".figure", has_text="Workers")).to_be_visible()
    expect(page.locator("#main a[href*='view=workers']")).to_have_count(0)
    page.goto(f"{base}?view=queues")
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.get_by_text("Your token does not allow that.")).to_have_count(0)
    expect(page.get_by_role("heading", name="Limits")).to_have_count(0)
    page.goto(f"{base}?view=tasks&queue=other")
    expect(page.locator(".body .row").first).to_be_visible()
    s.fleet.run("token", "revoke", "a-queue")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    page.wait_for_timeout(2500)
    expect(page.locator("#trouble")).to_be_hidden()
    page.context.close()


@check
def nothing_is_offered_before_the_server_says_what_is_allowed(s):
    page = s.browser.page()
    is_away = True
    page.route("**/v1/session", lambda route: route.fulfill(status=503) if is_away else route.continue_())
    page.goto(f"{s.base}?view=queues")
    expect(page.locator("tbody tr").first).to_be_visible()
    assert not page.locator("#new").is_visible() and page.get_by_role("button", name="Pause").count() == 0
    is_away = False
    expect(page.locator("#new")).to_be_visible()
    expect(page.get_by_role("button", name="Pause").first).to_be_visible()
    page.context.close()


@check
def axe_finds_nothing_serious_in_any_screen(s):
    axe = open(os.path.join(os.path.dirname(axe_playwright_python.__file__), "axe.min.js")).read()
    s.fleet.run("download", f"{s.origin.url}/missing.mp4", "--max-attempts", "1")
    running = s.fleet.run("download", f"{s.origin.url}/film-2.mp4", "--label", "title=The film")
    s.wait(lambda: s.there(running) and read(f"{s.base}v1/tasks/{running}")["bytesDone"] > 0, "it runs")
    s.wait(lambda: read(f"{s.base}v1/overview")["counts"]["failed"] > 0, "one has failed")
    failed = read(f"{s.base}v1/tasks?state=failed&limit=1")["tasks"][0]["id"]
    views = {
        "overview": "", "tasks": "?view=tasks", "task": f"?view=task&id={running}", "failed": f"?view=task&id={failed}",
        **{name: f"?view={name}" for name in ("submit", "workers", "queues", "hosts", "storages", "failures", "dead-letters", "operations")},
    }  # fmt: skip
    found = []
    for look, options in {
        "light": {"color_scheme": "light"}, "dark": {"color_scheme": "dark"},
        "phone": {"color_scheme": "light", "viewport": {"width": 390, "height": 844}},
    }.items():  # fmt: skip
        page = s.browser.page(**options, bypass_csp=True, reduced_motion="reduce")
        for name, query in views.items():
            page.goto(s.base + query)
            expect(page.locator("#live")).to_have_text("live")
            expect(page.locator("#main h1").first).to_be_attached()
            expect(page.locator("#main .loading", has_text="Loading")).to_have_count(0)
            for text in ("This server does not offer that.", "That could not be read."):
                assert page.get_by_text(text).count() == 0, f"{name}: {text}"
            wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0, f"{name} in {look} is {wide} px wider than its window"
            page.evaluate(axe)
            # Only the colours differ in the dark.
            rules = "['color-contrast']" if look == "dark" else "['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa']"
            told = page.evaluate(f"axe.run(document, {{runOnly: {rules}}})")
            for one in told["violations"]:
                found.append(f"{look} {name}: {one['impact']} {one['id']}: {one['nodes'][0]['html'][:200]}")
            if SCREENSHOTS:
                page.screenshot(path=f"{SCREENSHOTS}/{name}-{look}.png")
        page.context.close()
    assert not [one for one in found if "serious" in one or "critical" in one], "\n".join(found)


@check
def nothing_was_said_on_the_console_and_nobody_else_was_asked(s):
    assert not s.browser.complaints, "\n".join(s.browser.complaints[:5])
    assert all(origin.startswith("127.0.0.1:") for origin in s.browser.origins), s.browser.origins


class Stage:
    def note(self, words):
        print(f"     {words}", flush=True)

    def wait(self, is_so, words, seconds=PATIENCE / 1000):
        self.fleet.wait(is_so, words, seconds)

    def settled(self, value, words):
        """What `value` gives when it has given the same for a quarter of a second."""
        told = [value()]

        def is_the_same():
            told.append(value())
            return told[-6:] == told[-1:] * 6

        self.wait(is_the_same, words)
        return told[-1]

    def paused(self, queue, *options):
        """The id of a new task that does nothing."""
        id = self.fleet.run("submit", "noop", "--source", "noop://host/x", "--queue", queue, "--paused", *options)
        self.wait(lambda: self.there(id), "the task is there")
        return id

    def submit(self, task):
        """The id of a new task, once it is there."""
        body, headers = json.dumps(task).encode(), {"Content-Type": "application/json"}
        with urllib.request.urlopen(urllib.request.Request(f"{self.base}v1/tasks", body, headers), timeout=30) as answer:
            id = json.load(answer)["id"]
        self.wait(lambda: self.there(id), "the task is there")
        return id

    def there(self, id):
        with contextlib.suppress(urllib.error.HTTPError):
            return read(f"{self.base}v1/tasks/{id}")
        return None


def main():
    stage = Stage()
    stage.directory = tempfile.mkdtemp(prefix="reelhaul-dashboard")
    os.chmod(stage.directory, 0o755)
    if SCREENSHOTS:
        os.makedirs(SCREENSHOTS, exist_ok=True)
    only = sys.argv[2:]
    passed = failed = 0
    stage.fleet = None
    try:
        stage.origin = Origin()
        stage.fleet = Fleet(stage.directory)
        stage.port = free_port()
        stage.server, stage.base = stage.fleet.serve(stage.port)
        with sync_playwright() as playwright:
            stage.browser = Browser(playwright)
            for run in CHECKS:
                name = run.__name__.replace("_", " ")
                if only and not any(word in run.__name__ for word in only):
                    continue
                start = time.monotonic()
                try:
                    run(stage)
                    passed += 1
                    print(f"ok   {name} ({time.monotonic() - start:.1f} s)", flush=True)
                except Exception:
                    failed += 1
                    print(f"FAIL {name}\n{traceback.format_exc()}", file=sys.stderr, flush=True)
            stage.browser.browser.close()
    finally:
        if stage.fleet:
            stage.fleet.end()
        shutil.rmtree(stage.directory, ignore_errors=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
