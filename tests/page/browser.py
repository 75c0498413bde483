"""A headless Chromium, driven through chromedriver over plain HTTP: the W3C WebDriver protocol."""

import base64
import json
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

ARGUMENTS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--window-size=1440,1000",
]


def free_port():
    import socket
    with socket.socket() as it:
        it.bind(("127.0.0.1", 0))
        return it.getsockname()[1]


class Browser:
    def __init__(self):
        self.profile = tempfile.mkdtemp(prefix="forecourt-page-")
        port = free_port()
        self.base = f"http://127.0.0.1:{port}"
        self.driver = subprocess.Popen(
            ["chromedriver", f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(lambda: self._call("GET", "/status", none_on_failure=True), "chromedriver", 20)
        options = {"args": ARGUMENTS + [f"--user-data-dir={self.profile}"]}
        wanted = {"alwaysMatch": {
            "browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}}
        self.session = "/session/" + self._call("POST", "/session", {"capabilities": wanted})["sessionId"]

    def _call(self, method, path, body=None, none_on_failure=False):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self.base + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(error.read().decode()[:2000]) from None
        except OSError:
            if none_on_failure:
                return None
            raise

    def post(self, path, body):
        return self._call("POST", self.session + path, body)

    def open(self, url):
        self.post("/url", {"url": url})

    def run(self, script, *arguments):
        """The value of a function's body."""
        return self.post("/execute/sync", {"script": script, "args": list(arguments)})

    def devtools(self, command, **parameters):
        return self.post("/goog/cdp/execute", {"cmd": command, "params": parameters})

    def element(self, selector):
        found = self.post("/element", {"using": "css selector", "value": selector})
        return "/element/" + next(iter(found.values()))

    def click(self, selector):
        self.post(self.element(selector) + "/click", {})

    def type(self, selector, text):
        self.post(self.element(selector) + "/value", {"text": text})

    def text(self, selector):
        return self.run("const it = document.querySelector(arguments[0]); return it ? it.innerText : ''", selector)

    def complaints(self):
        """What the console holds since it was last asked: errors, refused resources, violations."""
        return [it["message"] for it in self.post("/se/log", {"type": "browser"})]

    def look(self, width, height, scheme):
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.devtools("Emulation.setScrollbarsHidden", hidden=True)
        self.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def picture(self, path):
        shot = self.devtools("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    def close(self):
        try:
            self._call("DELETE", self.session)
        finally:
            self.driver.terminate()
            self.driver.wait(10)
            shutil.rmtree(self.profile, ignore_errors=True)


def until(what, name, seconds=10):
    """Waits until something is so, and returns it with how long that took."""
    began = time.monotonic()
    while True:
        value = what()
        took = time.monotonic() - began
        if value:
            return value, took
        if took > seconds:
            raise AssertionError(f"not within {seconds} s: {name}")
        time.sleep(0.05)
