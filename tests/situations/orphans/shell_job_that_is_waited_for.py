"""A server's shell tool runs `job > log 2>&1 & wait`, and the job hangs; the agent is killed."""

TRUTH = "orphan"
TWIN = "let_go/shell_job"


def build(stage):
    stage.part("job", "here()\nrest()\n")
    stage.part("mcp-server-shell", """
        here()
        answer(os.read(0, 65536))
        subprocess.run(["/bin/bash", "-c", f"{BIN}/job > {DIR}/job.log 2>&1 & wait"], stdin=subprocess.DEVNULL)
    """)
    agent = stage.agent("mcp-server-shell")

    stage.who("job")
    agent.kill()
    return stage.truth(orphans=stage.everyone())
