"""A server execs in place into tmux, which keeps a session; the agent is killed."""

TRUTH = "in use"
TWIN = "orphans/execs_in_place"


def build(stage):
    stage.part("job", "here()\nuse('job', lambda: print('step', flush=True))\n")
    stage.part("tmux", """
        here()
        start("job", wire=None, stdout=open(f"{DIR}/job.log", "a"), start_new_session=True)
        rest()
    """)
    stage.part("mcp-server-turncoat", """
        answer(os.read(0, 65536))
        become("tmux")
    """)
    agent = stage.agent("mcp-server-turncoat")
    stage.beats("job")
    agent.kill()
    return stage.truth(in_use=[stage.who("tmux"), stage.who("job")])
