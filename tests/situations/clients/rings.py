import os
import siblings
import situation
from situation import scene

def servers(stage, keeps=True):
    """An agent with three servers. Each asks the next one again and again, over a connection that it keeps or a new one."""
    ring = ["first", "second", "third"]
    for name, after in zip(ring, ring[1:] + ring[:1]):
        stage.part(f"mcp-server-{name}", f"""
            listener = listen("tcp")
            def attend(caller):
                while caller.recv(100):
                    caller.sendall(b"pong")
            def welcome():
                while True:
                    in_background(attend, listener.accept()[0])
            def ask():
                after = dial("tcp", "mcp-server-{after}") if {keeps} else None
                while True:
                    ask_over(after) if after else call("tcp", "mcp-server-{after}")
                    tell("go/{name}", "asked")
                    time.sleep(0.5)
            in_background(welcome)
            in_background(ask)
            serve()
        """)
    agent = stage.run(stage.part("claude", """
        for name in ("first", "second", "third"):
            start(f"mcp-server-{name}")
        here()
        rest()
    """))
    stage.who("claude")
    for name in ring:
        situation.within(f"{name} is joined", lambda name=name: os.path.exists(f"{stage.dir}/go/{name}"))
    return agent, [stage.who(f"mcp-server-{name}") for name in ring]

@scene("in use", twin="orphans/ring")
def used_in_a_ring(stage):
    """A client uses one of three servers that call each other over TCP in a ring; their agent is killed."""
    return siblings.used(stage, *servers(stage))

@scene("orphan", name="orphans/ring", twin="clients/used_in_a_ring")
def ring(stage):
    """Three servers of one killed agent call each other over TCP in a ring; nobody else uses any."""
    agent, three = servers(stage)
    return stage.killed(agent, orphans=three)

@scene("orphan", name="orphans/ring_of_short_calls", twin="clients/used_in_a_ring")
def ring_of_short_calls(stage):
    """Three servers of one killed agent call each other over short TCP connections in a ring; nobody else uses any."""
    agent, three = servers(stage, keeps=False)
    return stage.killed(agent, orphans=three)

@scene("orphan", name="orphans/ring_of_two_agents", twin="clients/used_in_a_ring")
def ring_of_two_agents(stage):
    """The servers of two agents are connected with each other; both agents are killed, and nobody else uses any."""
    stage.part("mcp-server-peer", """
        in_background(answer_calls, listen("tcp"))
        peer = dial("tcp", argument("--peer"))
        in_background(use, ALIAS, lambda: ask_over(peer))
        serve()
    """)
    path = stage.part("claude", """
        start("mcp-server-peer", "--as", ALIAS + "s", "--peer", argument("--other") + "s")
        here()
        rest()
    """)
    agents = [stage.run(path, "--as", one, "--other", other) for one, other in (("left", "right"), ("right", "left"))]
    for alias in ("left", "right"):
        stage.who(alias)
        stage.was_used(alias + "s")
    agents[0].kill()
    return stage.killed(agents[1], orphans=["lefts", "rights"])
