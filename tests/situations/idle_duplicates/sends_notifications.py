"""Nobody calls the older one: it tells the agent of something now and then, which the agent waits for."""

TRUTH = "in use"
TWIN = "idle_duplicates/idle"


def build(stage):
    stage.part("mcp-server-watcher", """
        def notify():
            while True:
                time.sleep(1.5)
                os.write(1, b'{"jsonrpc": "2.0", "method": "notifications/resources/updated"}\\n')

        while data := os.read(0, 65536):
            answer(data)
            if b"subscribe" in data:
                threading.Thread(target=notify).start()
    """)
    agent = stage.run(stage.part("tidy-gateway", """
        def notified():
            if not os.read(older.r, 65536):
                raise EOFError
        older, newer = two("mcp-server-watcher")
        older.ask("resources/subscribe")
        here()
        threading.Thread(target=use, args=("tidy-gateway", newer.ask)).start()
        use("older", notified)
    """))
    stage.beats("older")
    stage.beats("tidy-gateway")
    return stage.truth(in_use=[agent, stage.who("older"), stage.who("newer")])
