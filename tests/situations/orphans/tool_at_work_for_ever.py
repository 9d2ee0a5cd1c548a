"""A server waits for a tool that works for ever; the agent is killed: both are ended when `work_grace` is over."""

TRUTH = "orphan"
TWIN = "orphans/tool_at_work"


def build(stage):
    stage.part("migrate", """
        here()
        while True:
            open(f"{DIR}/migration", "a").write("row\\n")
            time.sleep(0.25)
    """)
    stage.part("mcp-server-shell", """
        here()
        answer(os.read(0, 65536))
        subprocess.run([f"{BIN}/migrate"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        serve()
    """)
    agent = stage.agent("mcp-server-shell")
    migration = stage.who("migrate")
    agent.kill()

    return stage.truth(orphans=[stage.who("mcp-server-shell"), migration])
