"""Browsers and bridges of situations: a person's browser, playwright's, and supergateway with a client."""

import json
import os

import software
from situation import Broken


def browser(stage):
    """A person's browser, as `xdg-open` finds it: chromium with a profile of its own; gives the environment that leads there.

    It connects to nothing before it needs to: mcp-remote goes on only when the last connection to its callback port is closed."""
    profile = f"{stage.dir}/home/profile"
    os.makedirs(f"{profile}/Default")
    with open(f"{profile}/Default/Preferences", "w") as f:
        json.dump({"net": {"network_prediction_options": 2}}, f)
    flags = "--headless=new --no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-component-update"
    text = f'#!/bin/sh\nexec {software.CHROMIUM} {flags} --user-data-dir={profile} "$1"\n'
    stage.put("xdg-open", text)
    return {"BROWSER": stage.put("browser", text)}


def no_browser(stage):
    """Nobody's browser: opening a page does nothing, successfully."""
    stage.put("xdg-open", "#!/bin/sh\n")
    return {"BROWSER": stage.put("browser", "#!/bin/sh\n")}


def chromium_of(stage):
    """All processes of the one chromium of this situation, the first one first."""

    def main():
        is_first = lambda argv: argv[:1] == ["/usr/lib/chromium/chromium"] and not any(w.startswith("--type=") for w in argv)
        found = [p for p in stage.everyone() if is_first(p.argv())]
        return found[0] if len(found) == 1 else None

    first = software.within("a chromium", main)
    all_of_it = lambda: [first, *software.below(first)]
    software.within("a renderer of chromium", lambda: any("--type=renderer" in " ".join(p.argv()) for p in all_of_it()))
    return all_of_it()


def driving(stage, code=None, **how):
    """A host whose playwright-mcp has opened a page in a chromium of its own, and is then asked to run `code`, if any."""
    flags = ["--headless", "--isolated", "--no-sandbox", "--executable-path", software.CHROMIUM]
    if code:
        page = "data:text/html,<title>hi</title>"
        how.update(call=["browser_navigate", {"url": page}], then=["browser_run_code_unsafe", {"code": code}])
    else:
        how.update(call=["browser_navigate", {"url": "data:text/html,hi"}])
    host = software.Host(stage, "python2", software.npm_bin("playwright-mcp"), *flags, cwd=f"{stage.dir}/home", programs=4, **how)
    stage.named.update(software.below(host.process))
    return host


def steady(processes):
    """Those of a tree that stay while it lives: a chromium starts and ends renderers and helpers as it likes."""
    kinds = lambda p: [w for word in p.argv() for w in word.split() if w.startswith("--type=")]
    return [p for p in processes if set(kinds(p)) <= {"--type=zygote"}]


def bridge(stage):
    """supergateway as a service of its own, as an init script starts it: HTTP outside, a server-everything for each session inside.
    Gives its port and its process."""
    port = software.free_port()
    argv = [software.npm_bin("supergateway"), "--stdio", f"node {software.everything()}", "--outputTransport", "streamableHttp", "--stateful"]
    first = software.run(stage, *argv, "--port", str(port), start_new_session=True, cwd="/")

    def listening():
        if not first.alive():
            raise Broken("the bridge ended")
        return software.listens(first)

    software.within("the bridge listens", listening)
    return port, first


def http_client(stage, port, ticker=False):
    """A client that goes on using the MCP service on this port through one session; gives its process. `ticker`: it turns the
    server's ticker on, and rests."""
    client = stage.part("webclient", f"""
        import http.client
        line = http.client.HTTPConnection("127.0.0.1", {port}, timeout=TIMEOUT)
        headers = {{"content-type": "application/json", "accept": "application/json, text/event-stream"}}

        def ask(method, **params):
            line.request("POST", "/mcp", json.dumps({{"jsonrpc": "2.0", "id": 1, "method": method, "params": params}}), headers)
            answer = line.getresponse()
            body = answer.read()
            assert b'"result"' in body, body
            headers.update({{"mcp-session-id": answer.headers["mcp-session-id"]}} if answer.headers["mcp-session-id"] else {{}})

        ask("initialize", protocolVersion="2025-06-18", capabilities={{}}, clientInfo={{"name": "webclient", "version": "1"}})
        line.request("POST", "/mcp", '{{"jsonrpc": "2.0", "method": "notifications/initialized"}}', headers)
        line.getresponse().read()
        if {ticker}:
            ask("tools/call", name="toggle-subscriber-updates", arguments={{}})
            here()
            rest()
        use("webclient", lambda: ask("tools/list"))
    """)
    client = stage.run(client)
    if ticker:
        stage.who("webclient")
    else:
        stage.beats("webclient")
    return client
