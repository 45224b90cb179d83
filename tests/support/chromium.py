"""A real browser for tests: headless Chromium, talked to over a pipe in its own protocol (CDP), without a driver.

https://chromedevtools.github.io/devtools-protocol: JSON messages that end with a NUL, commands on its descriptor 3,
answers and events on 4. What is evaluated this way is not held back by the page's Content-Security-Policy, which so
can be tested by the same means. The flags keep Chromium from looking for hosts of its maker.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Dict, List, Optional

PATIENCE_S = 60.0
_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
    "--remote-debugging-pipe", "about:blank",
)  # fmt: skip


def chromium_binary() -> Optional[str]:
    return shutil.which("chromium") or shutil.which("chromium-browser")


class Browser:
    """One window. `events`: all that the page's session has told so far."""

    def __init__(self, binary: str) -> None:
        self.profile = tempfile.mkdtemp(prefix="cg-chromium-")
        self.events: List[Dict[str, Any]] = []
        self._number = 0
        self._buffer = b""
        its_in, self._out = os.pipe()
        self._in, its_out = os.pipe()
        words = [binary, *_FLAGS[:-1], f"--user-data-dir={self.profile}", _FLAGS[-1]]
        # Not by preexec_fn, which is unsafe beside threads; and dash knows no descriptors of two digits.
        shell = ["/bin/bash", "-c", f'exec "$@" 3<&{its_in} 4>&{its_out}', "bash", *words]
        self.process = subprocess.Popen(
            shell, pass_fds=(its_in, its_out), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env={**os.environ, "HOME": self.profile, "TZ": "UTC"}, start_new_session=True,
        )  # fmt: skip
        os.close(its_in)
        os.close(its_out)
        self._session: Optional[str] = None
        page = next(each for each in self.call("Target.getTargets")["targetInfos"] if each["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime"):
            self.call(f"{domain}.enable")

    def open(self, file: Path, width: int = 1280, height: int = 900, scheme: str = "light") -> None:
        """Show a file in a window of that size; returns when it is loaded."""
        self.events.clear()
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
        )
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Page.navigate", url=file.resolve().as_uri())
        end = time.monotonic() + PATIENCE_S
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self._receive(end)

    def read(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def requests(self) -> List[str]:
        """URLs that the page has asked for, or tried to."""
        sent = [event["params"] for event in self.events if event["method"] == "Network.requestWillBeSent"]
        return [str(params["request"]["url"]) for params in sent]

    def complaints(self) -> List[str]:
        """What the browser wrote to its console: errors, breaches of the policy."""
        return [json.dumps(event["params"]) for event in self.events if event["method"] == "Log.entryAdded"]

    def picture(self) -> bytes:
        """The whole page as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"])

    def printed(self) -> bytes:
        """The page on paper, as PDF."""
        return base64.b64decode(self.call("Page.printToPDF", printBackground=False)["data"])

    def call(self, method: str, **params: Any) -> Dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + PATIENCE_S
        while True:
            answer = self._receive(end)
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return dict(answer["result"])

    def close(self) -> None:
        try:
            self.call("Browser.close")
            self.process.wait(20)
        except (OSError, AssertionError, subprocess.TimeoutExpired):
            os.killpg(self.process.pid, 9)
            self.process.wait()
        os.close(self._out)
        os.close(self._in)
        shutil.rmtree(self.profile, ignore_errors=True)

    def _receive(self, end: float) -> Dict[str, Any]:
        while b"\0" not in self._buffer:
            assert select.select([self._in], [], [], max(0.0, end - time.monotonic()))[0], "chromium says nothing"
            chunk = os.read(self._in, 1 << 16)
            assert chunk, f"chromium ended: {self.process.poll()}"
            self._buffer += chunk
        head, _, self._buffer = self._buffer.partition(b"\0")
        message: Dict[str, Any] = json.loads(head)
        if "method" in message:
            self.events.append(message)
        return message
