"""The host is killed; of its two forked workers one reads the pipe of their queue, the other waits for the semaphore that lets it read."""

TRUTH = "orphan"
TWIN = "copies/woken_by_a_busy_copy"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    host = stage.run(stage.part("claude", """
        import multiprocessing
        server = start("mcp-server-fake")
        queue = multiprocessing.get_context("fork").SimpleQueue()
        for n in range(2):
            copy(queue.get, alias=f"worker{n}")
        here()
        rest()
    """))
    stage.who("claude")
    workers = [stage.who(f"worker{n}") for n in range(2)]
    stage.asleep(*workers)
    host.kill()
    return stage.truth(orphans=[stage.who("mcp-server-fake")], may_end=workers)
