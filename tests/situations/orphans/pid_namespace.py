"""The server is the first process of a PID namespace, with a child of its own; its agent is killed."""

TRUTH = "orphan"
TWIN = "let_go/in_a_pid_namespace"


def build(stage):
    stage.part("mcp-server-fake", """
        subprocess.Popen([BIN + "/tool"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        present("tool")
        serve()
    """)
    stage.part("tool", "here()\nrest()\n")
    agent = stage.run(stage.part("claude", """
        start("/usr/bin/unshare", "--pid", "--fork", BIN + "/mcp-server-fake")
        here()
        rest()
    """))
    stage.who("claude")
    agent.kill()
    return stage.truth(orphans=[*stage.find("mcp-server-fake"), *stage.find("tool")])
