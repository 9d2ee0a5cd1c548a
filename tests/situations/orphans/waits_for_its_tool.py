"""A server waits for a tool that it reads from (git, whose hook hangs); its agent is killed."""

TRUTH = "orphan"
TWIN = "let_go/hook_job"


def build(stage):
    stage.part("git", "here()\nsubprocess.run(['/bin/sh', '-c', 'while :; do sleep 1000; done'])\n")
    stage.part("mcp-server-git", """
        here()
        answer(os.read(0, 65536))
        subprocess.run([f"{BIN}/git", "commit"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    """)
    agent = stage.agent("mcp-server-git")
    stage.find("sleep")
    agent.kill()
    return stage.truth(orphans=stage.everyone())
