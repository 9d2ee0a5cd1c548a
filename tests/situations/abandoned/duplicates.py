"""An agent has three servers with the same arguments in the same directory, one for each of its threads of talk."""
import situation

TRUTH = "in use"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    agent = stage.run(stage.part("claude", """
        servers = [start("mcp-server-fake", "/data") for _ in range(3)]
        here()
        tell("servers", " ".join(str(server.pid) for server in servers))
        use("claude", lambda: [server.ask() for server in servers])
    """))
    stage.beats("claude")
    with open(f"{stage.dir}/servers") as f:
        servers = [situation.Process(pid) for pid in f.read().split()]
    return stage.truth(in_use=[agent, *servers])
