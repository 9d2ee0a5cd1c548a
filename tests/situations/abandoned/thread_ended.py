"""A gateway whose rule says thread_scoped: one job's thread ended without closing its server, another goes on."""

TRUTH = "mixed"
TWIN = "abandoned/thread_ended_without_a_rule"


def build(stage):
    stage.server("mcp-server-fake", "timer")
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
    return stage.truth(orphans=[stage.who("ended")], in_use=[agent, stage.who("goes-on")])
