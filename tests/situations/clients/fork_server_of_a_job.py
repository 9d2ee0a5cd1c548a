"""A worker of the server's fork server left as a job of its own and goes on starting others through it; the agent is killed."""
import fork_server

TRUTH = "in use"
TWIN = "orphans/fork_server"

JOB = """os.setsid()
        for stream in range(3):
            os.dup2(os.open(os.devnull, os.O_RDWR), stream)
        # Python would start another fork server here; the one that is there serves as well.
        import multiprocessing.forkserver
        multiprocessing.forkserver._forkserver.ensure_running = lambda: None
        told.send(0)
        here("job")
        use("job", ask)"""


def build(stage):
    found, server, forks = fork_server.agent(stage, JOB)
    job = stage.who("job")
    stage.beats("job")
    found.kill()
    return stage.truth(in_use=[server, forks, job])
