from situation import scene

@scene("orphan", twin="copies/fed_by_a_busy_copy")
def fed_by_an_idle_copy(stage):
    """The host is killed; of two copies the one that feeds the other's queue rests for ever, too."""
    host = stage.rests("claude", """
        queue, tasks = os.pipe()
        copy(rest, alias="front")
        server = start("mcp-server-fake")
        copy(lambda: os.read(queue, 1), alias="worker")
    """)
    copies = [stage.who("front"), stage.who("worker")]
    stage.asleep(*copies)
    return stage.killed(host, orphans=["mcp-server-fake"], may_end=copies)

@scene("orphan", twin="copies/worker_at_work")
def pool_workers(stage):
    """A host is killed; its forked pool workers, idle for ever, inherited the wire's write end."""
    agent = stage.rests("claude", """
        start("mcp-server-fake")
        for n in range(3):
            copy(rest, alias=f"worker{n}")
    """)
    workers = [stage.who(f"worker{n}") for n in range(3)]
    stage.asleep(*workers)
    return stage.killed(agent, orphans=["mcp-server-fake"], may_end=workers)

@scene("orphan", twin="copies/workers_with_servers_unknown_host")
def pool_workers_at_a_queue(stage):
    """An unknown Python host is killed; its forked workers wait for ever at a queue that nobody fills any more."""
    host = stage.run(stage.part("chat_host.py", """
        server = start("mcp-server-fake", wire="socket")
        queue, tasks = os.pipe()
        for n in range(2):
            copy(lambda: os.read(queue, 1), alias=f"worker{n}")
        use("host", server.ask)
    """))
    stage.was_used("host")
    workers = [stage.who(f"worker{n}") for n in range(2)]
    stage.asleep(*workers)
    return stage.killed(host, orphans=["mcp-server-fake"], may_end=workers)

@scene("orphan", twin="copies/woken_by_a_busy_copy")
def pool_workers_at_a_semaphore(stage):
    """The host is killed; of its two forked workers one reads the pipe of their queue, the other waits for the semaphore that lets it read."""
    host = stage.rests("claude", """
        import multiprocessing
        server = start("mcp-server-fake")
        queue = multiprocessing.get_context("fork").SimpleQueue()
        for n in range(2):
            copy(queue.get, alias=f"worker{n}")
    """)
    workers = [stage.who(f"worker{n}") for n in range(2)]
    stage.asleep(*workers)
    return stage.killed(host, orphans=["mcp-server-fake"], may_end=workers)
