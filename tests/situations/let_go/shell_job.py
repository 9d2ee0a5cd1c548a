"""A leaking server's shell tool ran `job > log 2>&1 &`, in the server's session; the agent is killed, the job works on."""

TRUTH = "mixed"
TWIN = "orphans/shell_job_that_is_waited_for"


def build(stage):
    stage.part("job", "here()\nuse('job', lambda: print('step', flush=True))\n")
    stage.part("mcp-server-shell", """
        subprocess.run(["/bin/bash", "-c", f"{BIN}/job > {DIR}/job.log 2>&1 &"], stdin=subprocess.DEVNULL)
        present("job")
        serve()
    """)
    agent = stage.agent("mcp-server-shell")

    stage.beats("job")
    stage.grows("job.log")
    agent.kill()
    return stage.truth(in_use=[stage.who("job")], orphans=[stage.who("mcp-server-shell")])
