import claude_code
import os
import software
import web
from remote_service import Remote
from situation import scene

@scene("in use", twin="published/bridge_killed", needs=["npm", "python2"])
def bridge(stage):
    """supergateway as a detached HTTP service in front of a stdio server, with a client that asks over and over"""
    port, service = web.bridge(stage)
    client = web.http_client(stage, port)
    return stage.truth(in_use=[service, *software.below(service), client])

@scene("orphan", twin="published/bridge", needs=["npm"])
def bridge_killed(stage):
    """supergateway, detached, with a server-everything whose ticker is on; the bridge is killed"""
    port, service = web.bridge(stage)
    web.http_client(stage, port, ticker=True)
    servers = software.below(service)
    return stage.killed(service, orphans=servers)

@scene("orphan", twin="published/remote_browser", needs=["npm", "claude"])
def claude_remote(stage):
    """Claude Code (`claude -p`) is killed; its mcp-remote, below npx, goes on waiting for somebody to sign in"""
    remote = Remote(signs_in=False)
    npx = {"command": "npx", "args": ["-y", "mcp-remote", f"{remote.url}/mcp"], "env": web.no_browser(stage)}
    options = ["--mcp-config", claude_code.configure(stage, remote=npx)]
    wait = f"touch {stage.dir}/go/begun; exec tail -f /dev/null"
    agent = claude_code.claude_runs(stage, ("Bash", {"command": wait, "timeout": 600000}), options=options, cwd=software.fixture("NPM"))
    software.within("its tool runs", lambda: os.path.exists(f"{stage.dir}/go/begun"))
    server = software.started_as(stage, "node", "mcp-remote")
    software.within("mcp-remote waits for the sign-in", lambda: software.listens(server))
    tree = software.below(agent)
    remote = [p for p in tree if "mcp-remote" in " ".join(p.argv())]
    stage.named.update(tree)
    return stage.killed(agent, orphans=remote, may_end=[p for p in tree if p not in remote])

@scene("orphan", twin="published/job_web", needs=["npm", "claude"])
def claude_ticker(stage):
    """Claude Code (`claude -p`) is killed; below npx its server-everything, ticker on, lives on"""
    config = claude_code.configure(stage, ticker={"command": "npx", "args": ["-y", "@modelcontextprotocol/server-everything"]})
    wait = f"touch {stage.dir}/go/begun; exec tail -f /dev/null"
    calls = [("mcp__ticker__toggle-subscriber-updates", {}), ("Bash", {"command": wait, "timeout": 600000})]
    agent = claude_code.claude_runs(stage, *calls, options=["--mcp-config", config], cwd=software.fixture("NPM"))
    software.within("its tools run", lambda: os.path.exists(f"{stage.dir}/go/begun"))
    tree = software.below(agent)
    server = [p for p in tree if "server-everything" in " ".join(p.argv())]
    stage.named.update(tree)
    return stage.killed(agent, orphans=server, may_end=[p for p in tree if p not in server])

@scene(
    "in use", name="before_job_pipeline", when="before", needs=["npm", "claude"],
    about="`nohup sh -c 'echo {} | mcp-server-x | sed .. > results' &` of Claude Code, which had ended before the daemon came",
)
@scene("in use", twin="published/claude_ticker", needs=["npm", "claude"])
def job_pipeline(stage):
    """Claude Code's Bash tool ran `nohup sh -c 'echo {} | mcp-server-x | sed .. > results' &`; claude ended, the job goes on"""
    stage.part("mcp-server-x", """
        here()
        sys.stdin.readline()
        while True:
            os.write(1, b'{"part": 1}\\n')
            time.sleep(0.1)
    """)
    results = f"{stage.dir}/results"
    agent = claude_code.bash(stage, f"nohup sh -c 'echo {{}} | mcp-server-x --as x | sed -u s/part/PART/ > {results}' > /dev/null 2>&1 &")
    server = stage.who("x")
    stage.grows("results")
    job = [p for p in stage.everyone() if p.session() == server.session()]
    claude_code.claude_ended(stage, agent)
    return stage.truth(in_use=job)

@scene(
    "in use", name="before_job_web", when="before", needs=["npm", "claude"],
    about="a web service that Claude Code's Bash tool started with a pipe as stdin; claude had ended before the daemon came",
)
@scene("in use", twin="published/claude_ticker", needs=["npm", "claude"])
def job_web(stage):
    """Claude Code's Bash tool ran `echo y | nohup my-mcp-web --http PORT > log &`; claude ended, the service is under load"""
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
    software.within("the service listens", lambda: software.listens(web))
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

@scene(
    "orphan", name="before_playwright_blocked", when="before", needs=["npm", "python2", "chromium"],
    cost="nobody saw who started it, and it listens: it may be a service that somebody will call",
    about="playwright's server, blocked, with its chromium; its host was killed before the daemon came",
)
@scene("orphan", twin="published/playwright_host", needs=["npm", "python2", "chromium"])
def playwright_blocked(stage):
    """playwright's server is blocked in the code that it was given, with its chromium; its host is killed"""
    begun = f"{stage.dir}/go/begun.png"
    wait = "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)"
    host = web.driving(stage, code=f"async (page) => {{ await page.screenshot({{ path: '{begun}' }}); {wait}; }}")
    software.within("its code runs", lambda: os.path.exists(begun))
    tree = software.below(host.process)
    return stage.killed(host, orphans=tree)

@scene("in use", twin="published/playwright_blocked", needs=["npm", "python2", "chromium"])
def playwright_host(stage):
    """playwright's server and its chromium below a living host"""
    host = web.driving(stage, use=True)
    return stage.truth(in_use=[host.process, *web.steady(software.below(host.process))])

@scene(
    "in use", name="before_remote_browser", twin="published/before_remote_waits", when="before", needs=["npm", "python2", "chromium"],
    about="a person's browser that mcp-remote opened to sign in; the session had ended cleanly before the daemon came",
)
@scene("in use", twin="published/remote_waits", needs=["npm", "python2", "chromium"])
def remote_browser(stage):
    """mcp-remote opened a person's browser (chromium) to sign in; the session went on and ended cleanly"""
    remote = Remote(signs_in=True)
    # Without a page of its own mcp-remote's last page closes itself, and with it a browser that shows nothing else.
    command = [software.npm_bin("mcp-remote"), f"{remote.url}/mcp", "--auth-success-url", f"{remote.url}/welcome"]
    host = software.Host(stage, "python2", *command, env=web.browser(stage))
    browser = web.chromium_of(stage)
    stage.named.update(browser)
    host.close()
    software.within("mcp-remote ends with its session", lambda: not host.server[0].alive())
    stage.checks.append(lambda: any(p.alive() for p in browser if p not in web.steady(browser)))
    return stage.truth(in_use=web.steady(browser))

@scene(
    "orphan", name="before_remote_waits", twin="published/before_remote_browser", when="before", needs=["npm"],
    cost="nobody saw who started it, and it listens: it may be a service that somebody will call",
    about="mcp-remote waits for somebody to sign in (OAuth); its host was killed before the daemon came",
)
@scene("orphan", twin="published/remote_browser", needs=["npm"])
def remote_waits(stage):
    """mcp-remote waits for somebody to sign in (OAuth); its host on the Node SDK is killed"""
    remote = Remote(signs_in=False)
    how = {"env": web.no_browser(stage), "mute": True}
    host = software.Host(stage, "node", software.npm_bin("mcp-remote"), f"{remote.url}/mcp", **how)
    software.within("it waits for the sign-in", lambda: software.listens(host.server[-1]))
    return stage.killed(host, orphans=host.server)

@scene("in use", twin="published/serve_killed_tool", needs=["npm", "claude", "python2"])
def serve_dev_server(stage):
    """`claude mcp serve` ran `nohup python3 -m http.server &` in its Bash tool; the session ended cleanly"""
    port = software.free_port()
    command = f"nohup python3 -m http.server {port} --bind 127.0.0.1 > {stage.dir}/web.log 2>&1 &"
    host = software.Host(stage, "python2", claude_code.claude(), "mcp", "serve", call=["Bash", {"command": command}])
    web = software.started_as(stage, "http.server", str(port))
    software.within("the web server answers", lambda: software.answers(port))
    server = host.close()
    software.within("claude ends with its session", lambda: not any(p.alive() for p in server if p != web))
    stage.checks.append(lambda: software.answers(port))
    return stage.truth(in_use=[web])

@scene("orphan", twin="published/serve_dev_server", needs=["npm", "claude", "python2"])
def serve_killed_tool(stage):
    """`claude mcp serve` is in the middle of a command that never comes back; its host is killed"""
    command = f"touch {stage.dir}/go/begun; exec tail -f /dev/null"
    how = {"then": ["Bash", {"command": command, "timeout": 600000}]}
    host = software.Host(stage, "python2", claude_code.claude(), "mcp", "serve", **how)
    software.within("the tool runs", lambda: os.path.exists(f"{stage.dir}/go/begun"))
    tail = software.started_as(stage, "tail", "-f", "null")
    stage.named.update(software.below(host.process))
    server = host.kill()
    return stage.truth(orphans=server, may_end=[tail])
