"""An agent that an editor talks to by the Agent Client Protocol outlives it: no server of ours."""

TRUTH = "in use"
TWIN = "protocol/home_made"


def build(stage):
    stage.part("coder", "here()\nos.read(0, 65536)\nleak_on('timer')\n")
    host = stage.run(stage.part("editor_host.py", """
        about = {"protocolVersion": 1, "clientCapabilities": {"fs": {"readTextFile": True}}}
        os.write(start("coder", asked=False).w, json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": about}).encode() + b"\\n")
        present("coder")
        here()
        rest()
    """))
    stage.who("editor_host.py")
    host.kill()
    return stage.truth(in_use=[stage.who("coder")])
