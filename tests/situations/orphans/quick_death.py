"""Eight times: the agent dies within a millisecond after its server's exec."""
import situation

TRUTH = "orphan"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    path = stage.part("claude", """
        start("mcp-server-fake", "--as", f"server{argument('--number')}", asked=False)
        os.kill(os.getpid(), signal.SIGKILL)
    """)
    agents = [stage.run(path, "--number", n) for n in range(8)]
    servers = [stage.who(f"server{n}") for n in range(8)]
    situation.within("the agents' end", lambda: not any(agent.alive() for agent in agents))
    return stage.truth(orphans=servers)
