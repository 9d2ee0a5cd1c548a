from situation import scene

@scene("mixed", twin="abandoned/thread_ended_without_a_rule")
def thread_ended(stage):
    """A gateway whose rule says thread_scoped: one job's thread ended without closing its server, another goes on."""
    agent = stage.run(stage.part("threaded-gateway", """
        def job(name, work):
            server = start("mcp-server-fake", "--as", name, start_new_session=True)
            work(server)
        kept = []
        ends = threading.Thread(target=job, args=("ended", kept.append))
        ends.start()
        ends.join()
        here()
        threading.Thread(target=job, args=("goes-on", lambda server: use("job", server.ask))).start()
        rest()
    """))
    stage.beats("job")
    return stage.truth(orphans=["ended"], in_use=[agent, "goes-on"])

@scene("in use", twin="abandoned/thread_ended")
def thread_ended_another_goes_on(stage):
    """The rule says thread_scoped, and is wrong: another thread goes on with the server of the one that ended."""
    agent = stage.uses("threaded-gateway", """
        kept = []
        ends = threading.Thread(target=lambda: kept.append(start("mcp-server-fake")))
        ends.start()
        ends.join()
        here()
        use("threaded-gateway", kept[0].ask)
    """)
    return stage.truth(in_use=[agent, "mcp-server-fake"])

@scene("in use", twin="abandoned/thread_ended")
def thread_ended_without_a_rule(stage):
    """The same below a gateway of which no rule says that its servers end with their threads."""
    agent = stage.run(stage.part("claude", """
        kept = []
        ends = threading.Thread(target=lambda: kept.append(start("mcp-server-fake")))
        ends.start()
        ends.join()
        here()
        on_call("claude", kept[0].ask)
    """))
    stage.when_called("claude", stage.who("claude"))
    return stage.truth(in_use=[agent, "mcp-server-fake"])

@scene("in use", twin="abandoned/thread_ended")
def thread_ended_worker_has_the_wires(stage):
    """The rule says thread_scoped; a forked copy of the gateway has the wires of the server and may use it."""
    agent = stage.rests("threaded-gateway", """
        kept = []
        ends = threading.Thread(target=lambda: kept.append(start("mcp-server-fake")))
        ends.start()
        ends.join()
        copy(lambda: on_call("worker", kept[0].ask), alias="worker")
    """)
    stage.when_called("worker", stage.who("worker"))
    return stage.truth(in_use=[agent, "worker", "mcp-server-fake"])
