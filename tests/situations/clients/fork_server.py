import situation
from situation import scene

# A server with one worker, which does what `job` says.
SERVER = """
    import multiprocessing
    context = multiprocessing.get_context("forkserver")
    def leaf(told):
        told.send(b"pong")
    def ask():
        near, far = context.Pipe()
        one = context.Process(target=leaf, args=(far,))
        one.start()
        if near.recv() != b"pong":
            raise EOFError("no answer")
        one.join()
    def job(told):
        {job}
    if __name__ == "__main__":
        near, far = context.Pipe()
        context.Process(target=job, args=(far,)).start()
        near.recv()
        near.close(), far.close()
        serve()
"""


def agent(stage, job):
    """An agent with such a server; gives it, the server, and the fork server."""
    # Its workers import the program, so it needs a name that can be imported.
    stage.part("mcp_server_fake.py", SERVER.format(job=job))
    found = stage.run(stage.part("claude", """
        start("mcp_server_fake.py")
        here()
        rest()
    """))
    stage.who("claude")
    server = stage.who("mcp_server_fake.py")
    def fork_server():
        below = [p for p in stage.everyone() if p.parent() == server.pid and any("forkserver" in word for word in p.argv())]
        return below[0] if below else None
    return found, server, situation.within("a fork server", fork_server)


JOB = """os.setsid()
        for stream in range(3):
            os.dup2(os.open(os.devnull, os.O_RDWR), stream)
        # Python would start another fork server here; the one that is there serves as well.
        import multiprocessing.forkserver
        multiprocessing.forkserver._forkserver.ensure_running = lambda: None
        told.send(0)
        here("job")
        use("job", ask)"""

@scene("orphan", name="orphans/fork_server", twin="clients/fork_server_of_a_job")
def fork_server(stage):
    """The server starts its workers through Python's fork server, by short calls to a unix socket; its agent is killed."""
    found, server, forks = agent(stage, "told.send(0), rest()")
    return stage.killed(found, orphans=[server, forks])

@scene("in use", twin="orphans/fork_server")
def fork_server_of_a_job(stage):
    """A worker of the server's fork server left as a job of its own and goes on starting others through it; the agent is killed."""
    found, server, forks = agent(stage, JOB)
    job = stage.who("job")
    stage.beats("job")
    return stage.killed(found, in_use=[server, forks, job])
