"""A headless Chromium driven over its DevTools pipe: real clicks, keys, printing, its console."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")


class Browser:
    """One tab. What the page writes to the console or asks of the network is kept."""

    def __init__(self, folder: Path) -> None:
        program = next((found for name in NAMES if (found := shutil.which(name))), None)
        if program is None:
            pytest.skip(f"none of {', '.join(NAMES)} is installed")
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        # The browser reads from its descriptor 3 and writes to its 4.
        redirect = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
        self._process = subprocess.Popen(
            [
                *("bash", "-c", redirect, "bash", program),
                *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
                *("--disable-extensions", "--disable-background-networking", "--no-first-run"),
                *("--hide-scrollbars", "--remote-debugging-pipe", f"--user-data-dir={folder}"),
            ],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self._session = session
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a DevTools method and give its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        answer = self._wait(lambda m: m.get("id") == self._number)
        assert "error" not in answer, (method, answer["error"])
        return answer["result"]

    def open(self, path: Path) -> None:
        """Open a file and wait until it is loaded."""
        self.events.clear()
        self.call("Page.navigate", url=path.resolve().as_uri())
        self._wait(lambda m: m.get("method") == "Page.loadEventFired")

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def click(self, selector: str) -> None:
        """Press and let go of the mouse in the middle of an element."""
        box = self.evaluate(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'center', behavior: 'instant'});"
            "const b = e.getBoundingClientRect();"
            "return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.call(
                "Input.dispatchMouseEvent",
                type=kind,
                x=box[0],
                y=box[1],
                button="none" if kind == "mouseMoved" else "left",
                clickCount=0 if kind == "mouseMoved" else 1,
            )

    def press(self, key: str, code: int, text: str = "") -> None:
        """Press a key and let go of it."""
        common = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **common)
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def view(self, width: int, scheme: str = "light", height: int = 900) -> None:
        """The width of the window in pixels, and what the system prefers."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        self.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )

    def picture(self, whole: bool = True) -> bytes:
        """The page as PNG."""
        answer = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        return base64.b64decode(answer["data"])

    def print(self) -> bytes:
        """The page as PDF, as its own rules for paper want it."""
        answer = self.call("Page.printToPDF", preferCSSPageSize=True, printBackground=False)
        return base64.b64decode(answer["data"])

    def complaints(self) -> list[str]:
        """Errors and warnings of the console since the page was opened, and uncaught exceptions."""
        found = []
        for event in self.events:
            method, params = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                found.append(json.dumps(params["exceptionDetails"]))
            elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                found.append(params["entry"]["text"])
            elif method == "Runtime.consoleAPICalled":
                found.append(json.dumps(params["args"]))
        return found

    def asked_for(self) -> list[str]:
        """The addresses that were asked for since the page was opened."""
        sent = "Network.requestWillBeSent"
        return [e["params"]["request"]["url"] for e in self.events if e.get("method") == sent]

    def close(self) -> None:
        """End the browser."""
        self._session = None
        try:
            self.call("Browser.close")
        except (AssertionError, OSError):
            self._process.kill()
        self._process.wait(timeout=30)
        os.close(self._write)
        os.close(self._read)

    def _wait(self, wanted: Any, seconds: float = 120.0) -> dict[str, Any]:
        for event in self.events:
            if event.get("method") and wanted(event):
                return event
        end = time.monotonic() + seconds
        while True:
            while b"\0" not in self._buffer:
                ready, _, _ = select.select([self._read], [], [], end - time.monotonic())
                assert ready, "the browser does not answer"
                piece = os.read(self._read, 1 << 16)
                assert piece, "the browser has gone"
                self._buffer += piece
            text, _, self._buffer = self._buffer.partition(b"\0")
            message = json.loads(text)
            if "method" in message:
                self.events.append(message)
            if wanted(message):
                return message
