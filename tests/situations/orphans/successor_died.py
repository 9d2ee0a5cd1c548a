"""The wires were handed to a successor, and then the successor was killed as well."""
import situation

TRUTH = "orphan"
TWIN = "handed_on/successor"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    path = stage.part("claude", """
        if ALIAS == "second":
            here()
            rest()
        server = start("mcp-server-fake")
        start("claude", "--as", "second", wire=None, pass_fds=[server.w, server.r])
        present("second")
    """)
    first = stage.run(path, "--as", "first")
    second = stage.who("second")
    situation.within("the first's end", lambda: not first.alive())
    second.kill()
    return stage.truth(orphans=[stage.who("mcp-server-fake")])
