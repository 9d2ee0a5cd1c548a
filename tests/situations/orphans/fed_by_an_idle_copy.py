"""The host is killed; of two copies the one that feeds the other's queue rests for ever, too."""

TRUTH = "orphan"
TWIN = "copies/fed_by_a_busy_copy"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    host = stage.run(stage.part("claude", """
        queue, tasks = os.pipe()
        copy(rest, alias="front")
        server = start("mcp-server-fake")
        copy(lambda: os.read(queue, 1), alias="worker")
        here()
        rest()
    """))
    stage.who("claude")
    copies = [stage.who("front"), stage.who("worker")]
    stage.asleep(*copies)
    host.kill()
    return stage.truth(orphans=[stage.who("mcp-server-fake")], may_end=copies)
