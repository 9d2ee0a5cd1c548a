"""The same, and now and then the agent calls the older one, too."""
import software

TRUTH = "in use"
TWIN = "idle_duplicates/published_node"
NEEDS = ["npm"]


def build(stage):
    stage.write("server", software.npm_bin("mcp-server-filesystem"))
    agent = stage.run(stage.part("tidy-gateway", """
        server = open(f"{DIR}/server").read()
        older, newer = two(server, [DIR], [DIR], wire="socket", stderr=subprocess.DEVNULL)
        here()
        def both():
            for _ in range(6):
                newer.ask()
                time.sleep(0.25)
            older.ask()
        use("tidy-gateway", both)
    """))
    stage.beats("tidy-gateway")
    return stage.truth(in_use=[agent, stage.who("older"), stage.who("newer")])
