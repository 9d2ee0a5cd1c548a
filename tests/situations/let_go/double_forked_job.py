"""A leaking server had double-forked a job into a session of its own; the agent is killed: the job works on."""

TRUTH = "mixed"
TWIN = "orphans/tied_browser"


def build(stage):
    stage.part("job", "here()\nuse('job', lambda: print('step', flush=True))\n")
    stage.part("mcp-server-ops", """
        def middle():
            os.setsid()
            start("job", wire=None, stdout=open(f"{DIR}/job.log", "a"), stderr=subprocess.DEVNULL)
        os.waitpid(copy(middle), 0)
        serve()
    """)
    agent = stage.agent("mcp-server-ops")
    stage.beats("job")
    agent.kill()
    return stage.truth(orphans=[stage.who("mcp-server-ops")], in_use=[stage.who("job")])
