"""A language server and a debug adapter outlive the program that started them: no servers of ours."""

TRUTH = "in use"
TWIN = "protocol/home_made"


def build(stage):
    for program in ("tlsd", "dapd"):
        stage.part(program, "here()\nos.read(0, 65536)\nleak_on('timer')\n")
    host = stage.run(stage.part("editor_host.py", """
        def frame(program, message):
            body = json.dumps(message).encode()
            os.write(start(program, asked=False).w, b"Content-Length: %d\\r\\n\\r\\n%s" % (len(body), body))
            present(program)

        frame("tlsd", {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"capabilities": {}, "clientInfo": {"name": "editor"}}})
        frame("dapd", {"seq": 1, "type": "request", "command": "initialize", "arguments": {"adapterID": "x"}})
        here()
        rest()
    """))
    stage.who("editor_host.py")
    host.kill()
    return stage.truth(in_use=[stage.who("tlsd"), stage.who("dapd")])
