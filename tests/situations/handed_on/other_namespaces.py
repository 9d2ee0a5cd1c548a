"""The successor lives in PID, mount, network and IPC namespaces of its own, as in a container."""
import situation

TRUTH = "in use"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    stage.part("helper.py", "use('helper', handed().ask)\n")
    first = stage.run(stage.part("claude", """
        server = start("mcp-server-fake")
        how = ["--pid", "--mount", "--net", "--ipc", "--uts", "--fork"]
        hand_on(server, "/usr/bin/unshare", *how, f"{BIN}/helper.py", alias="helper.py")
    """))
    stage.beats("helper")
    situation.within("the first's end", lambda: not first.alive())
    return stage.truth(in_use=[stage.who("helper.py"), stage.who("mcp-server-fake")])
