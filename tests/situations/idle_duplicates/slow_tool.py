"""The older one has been asked something, and waits for a program that it runs, which rests for now."""

TRUTH = "in use"
TWIN = "idle_duplicates/idle"


def build(stage):
    stage.part("mcp-server-slow", """
        def slow():
            tool = subprocess.Popen(["/bin/sh", "-c", "trap 'exit 0' USR1; sleep 3600 & wait"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            here("tool", tool.pid)
            time.sleep(0.5)
            here("at-work")
            tool.wait()

        pending = b""
        while data := os.read(0, 65536):
            *lines, pending = (pending + data).split(b"\\n")
            for line in lines:
                if b"slow" in line:
                    slow()
                answer(line)
    """)
    agent = stage.run(stage.part("tidy-gateway", """
        older, newer = two("mcp-server-slow")
        tell("beats/older", "0")
        os.write(older.w, b'{"jsonrpc": "2.0", "id": 1, "method": "slow"}\\n')
        present("at-work")
        here()
        def both():
            newer.ask()
            if select.select([older.r], [], [], 0)[0]:
                older.take()
                tell("beats/older", "1")
        use("tidy-gateway", both)
    """))
    stage.beats("tidy-gateway")
    stage.when_called("older", stage.who("tool"))
    return stage.truth(in_use=[agent, stage.who("older"), stage.who("newer"), stage.who("tool")])
