"""A server and its worker wake each other at a semaphore in memory that nobody else maps; the agent is killed."""

TRUTH = "orphan"
TWIN = "clients/shared_memory"


def build(stage):
    stage.part("mcp-server-fake", """
        memory = mmap.mmap(-1, 4096)
        semaphore = ctypes.byref(ctypes.c_char.from_buffer(memory))
        libc.sem_init(semaphore, 1, 0)
        if os.fork() == 0:
            here("worker")
            while libc.sem_wait(semaphore) == 0:
                pass
        in_background(lambda: libc.sem_wait(semaphore))
        present("worker")
        serve()
    """)
    agent = stage.agent("mcp-server-fake")
    agent.kill()
    return stage.truth(orphans=[stage.who("mcp-server-fake"), stage.who("worker")])
