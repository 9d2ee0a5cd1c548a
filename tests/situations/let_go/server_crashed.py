"""The server crashes first and leaves a job in a session of its own; then its agent is killed."""

TRUTH = "in use"

import signal


def build(stage):
    stage.part("job", "here()\nuse('job', lambda: print('step', flush=True))\n")
    stage.part("mcp-server-ops", """
        start("job", wire=None, stdout=open(f"{DIR}/job.log", "a"), start_new_session=True)
        serve()
    """)
    agent = stage.agent("mcp-server-ops")
    stage.beats("job")
    stage.who("mcp-server-ops").kill(signal.SIGSEGV)
    agent.kill()
    return stage.truth(in_use=[stage.who("job")])
