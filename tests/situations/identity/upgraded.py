"""The executable of a server was replaced on disk since it started; it is used later."""
import os
import shutil
import situation

TRUTH = "in use"
TWIN = "identity/upgraded_and_left"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    shutil.copy(situation.PYTHON, f"{stage.dir}/bin/python3")
    agent = stage.run(stage.part("claude", """
        server = start("python3", "-ISB", f"{BIN}/mcp-server-fake", "--as", "mcp-server-fake")
        here()
        on_call("claude", server.ask)
    """))
    server = stage.who("mcp-server-fake")
    shutil.copy(situation.PYTHON, f"{stage.dir}/bin/next")
    os.replace(f"{stage.dir}/bin/next", f"{stage.dir}/bin/python3")
    situation.within("its binary is stale", lambda: os.readlink(f"/proc/{server.pid}/exe").endswith(" (deleted)"))
    stage.when_called("claude", agent)
    return stage.truth(in_use=[agent, server])
