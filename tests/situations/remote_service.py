"""A remote MCP service on 127.0.0.1 that wants OAuth: what mcp-remote talks to. `Remote(signs_in=True)`: whoever opens the sign-in
page is sent back with a code at once, as by somebody who is signed in already; else the page waits for a person who never comes."""
import http.server
import json
import threading
from urllib.parse import parse_qs, urlencode, urlsplit


class Handler(http.server.BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    timeout = 60

    def log_message(self, *_):
        pass

    def answer(self, status, body, kind="application/json", **headers):
        body = body if isinstance(body, str) else json.dumps(body)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def do_GET(self):
        url, path = self.server.url, urlsplit(self.path)
        if path.path.startswith("/.well-known/oauth-protected-resource"):
            self.answer(200, {"resource": f"{url}/mcp", "authorization_servers": [url]})
        elif path.path.startswith("/.well-known/"):
            self.answer(200, {
                "issuer": url,
                "authorization_endpoint": f"{url}/authorize",
                "token_endpoint": f"{url}/token",
                "registration_endpoint": f"{url}/register",
                "response_types_supported": ["code"],
                "grant_types_supported": ["authorization_code", "refresh_token"],
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none"],
            })
        elif path.path == "/authorize":
            asked = parse_qs(path.query)
            self.server.opened.set()
            if self.server.signs_in:
                back = {"code": "code", "state": asked.get("state", [""])[0], "iss": url}
                self.answer(302, "", location=f"{asked['redirect_uri'][0]}?{urlencode(back)}")
            else:
                self.answer(200, "<p>Who are you?</p>", "text/html")
        elif path.path == "/welcome":
            self.answer(200, "<p>Welcome.</p>", "text/html")
        elif path.path == "/mcp":
            self.answer(405, {})
        else:
            self.answer(404, {})

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
        if self.path == "/register":
            self.answer(201, {**json.loads(body), "client_id": "client"})
        elif self.path == "/token":
            self.answer(200, {"access_token": "token", "token_type": "Bearer", "expires_in": 3600})
        elif self.path != "/mcp":
            self.answer(404, {})
        elif self.headers.get("authorization") != "Bearer token":
            where = f'Bearer resource_metadata="{self.server.url}/.well-known/oauth-protected-resource"'
            self.answer(401, {"error": "invalid_token"}, www_authenticate=where)
        else:
            self.serve(json.loads(body))

    def serve(self, asked):
        """One message of the client."""
        results = {
            "initialize": {
                "protocolVersion": (asked.get("params") or {}).get("protocolVersion"),
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "remote", "version": "1"},
            },
            "tools/list": {"tools": []},
            "ping": {},
        }
        if "id" not in asked:
            self.answer(202, "")
        elif asked["method"] in results:
            self.answer(200, {"jsonrpc": "2.0", "id": asked["id"], "result": results[asked["method"]]})
        else:
            self.answer(200, {"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32601, "message": "no such method"}})


class Remote(http.server.ThreadingHTTPServer):
    """The service, until the process ends. `opened` is set when the sign-in page was opened."""

    def __init__(self, signs_in):
        super().__init__(("127.0.0.1", 0), Handler)
        self.signs_in, self.opened = signs_in, threading.Event()
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, address):
        """A client that breaks a connection off is no news."""
