"""Claude Code's Bash tool ran `echo y | nohup my-mcp-web --http PORT > log &`; claude ended, the service is under load"""
import claude_code
import software

TRUTH = "in use"
NEEDS = ["npm", "claude"]
TWIN = "published/claude_ticker"


def build(stage):
    port = software.free_port()
    stage.put("my-mcp-web", """
        #!/usr/bin/python3 -ISB
        import http.server
        import sys

        class Page(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b"hello")

            def log_message(self, *_):
                pass

        http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Page).serve_forever()
    """)
    agent = claude_code.bash(stage, f"echo y | nohup my-mcp-web --http {port} > {stage.dir}/web.log 2>&1 &")
    web = software.started_as(stage, "my-mcp-web", "--http", str(port))
    load = stage.part("load", f"""
        import http.client
        def get():
            line = http.client.HTTPConnection("127.0.0.1", {port}, timeout=TIMEOUT)
            line.request("GET", "/")
            assert line.getresponse().read() == b"hello"
            line.close()
        use("load", get)
    """)
    load = stage.run(load)
    stage.beats("load")
    claude_code.claude_ended(stage, agent)
    return stage.truth(in_use=[web, load])
