"""The name of a server says little, but its home-made host, which is killed, spoke the protocol to it."""

TRUTH = "orphan"
TWIN = "others/job_named_like_a_server"


def build(stage):
    stage.server("mcp-notes", "timer")
    host = stage.run(stage.part("chat_host.py", "use('host', session('mcp-notes').ask)\n"))
    stage.was_used("host")
    host.kill()
    return stage.truth(orphans=[stage.who("mcp-notes")])
