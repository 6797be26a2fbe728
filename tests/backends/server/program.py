"""A server for tests: `python program.py PORT [OPTION…]`, nothing imported from the project.

- `loading=N`: the first N answers say that it is still loading.
- `family`: starts a process of its own, and both ignore the polite request to end.
- `silent`: takes no connection.
- `keyed=NAME`: wants the key in the variable NAME.
- `says=TEXT`: prints TEXT and exits.
"""

import os
import signal
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer


def main(port: str, *options: str) -> None:
    given = dict(option.partition("=")[::2] for option in options)
    if "says" in given:
        sys.exit(given["says"])
    if "family" in given:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
        child = subprocess.Popen([sys.executable, "-c", code])
        print("child", child.pid, flush=True)
    print("server", os.getpid(), flush=True)
    if "silent" in given:
        time.sleep(60)
    left = int(given.get("loading", 0))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            nonlocal left
            left -= 1
            wanted = os.environ[given["keyed"]] if "keyed" in given else None
            refused = wanted and self.headers["Authorization"] != f"Bearer {wanted}"
            self.send_response(503 if left >= 0 else 401 if refused else 404)
            self.send_header("Content-Length", "0")
            self.end_headers()

    HTTPServer(("127.0.0.1", int(port)), Handler).serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
