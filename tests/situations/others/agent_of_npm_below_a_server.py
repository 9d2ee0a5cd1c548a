"""A tool of a server started Claude Code by the path of npm's package (bin/claude.exe); the server's agent is killed."""
import os
import shutil
import situation

TRUTH = "in use"
TWIN = "orphans/helper_below_a_server"


def build(stage):
    program = f"{stage.dir}/node_modules/@anthropic-ai/claude-code/bin/claude.exe"
    os.makedirs(os.path.dirname(program))
    shutil.copy(os.path.realpath(situation.PYTHON), program)
    stage.part("work.txt", "here('assistant')\nuse('assistant', lambda: None)\n")
    stage.part("mcp-server-agents", f"""
        start({program!r}, "-ISB", f"{{BIN}}/work.txt", wire=None)
        present("assistant")
        serve()
    """)
    agent = stage.agent("mcp-server-agents")
    stage.beats("assistant")
    agent.kill()
    return stage.truth(in_use=[stage.who("assistant")], may_end=[stage.who("mcp-server-agents")])
