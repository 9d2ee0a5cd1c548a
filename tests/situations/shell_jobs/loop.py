"""A nohup loop outlives the agent and starts one server after the other: each is born when the agent is dead."""

TRUTH = "in use"


def build(stage):
    stage.part("mcp-server-batch", """
        here(f"server{os.path.getsize(DIR + '/started')}")
        answer(os.read(0, 65536))
        use("loop", lambda: os.write(1, b"result\\n"))
    """)
    agent = stage.run(stage.part("claude", """
        open(f"{DIR}/started", "w").close()
        line = f"echo >> started; echo '{{\\"id\\":1}}' | {BIN}/mcp-server-batch >> results"
        shell(f"nohup sh -c 'while [ ! -e go/dead ]; do sleep 0.1; done; while :; do {line}; done' > /dev/null 2>&1 &")
        here()
        rest()
    """))
    stage.who("claude")
    loop = [p for p in stage.find("sh") if "while" in p.argv()[-1]]
    agent.kill()
    stage.go("dead")
    server = stage.who("server1")
    stage.grows("results")
    return stage.truth(in_use=[server, *loop])
