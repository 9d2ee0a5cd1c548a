"""Two published servers on node, at sockets as clients on node make them: the older one does nothing."""
import software

TRUTH = "mixed"
TWIN = "idle_duplicates/published_node_resumes"
NEEDS = ["npm"]


def build(stage):
    stage.write("server", software.npm_bin("mcp-server-filesystem"))
    agent = stage.run(stage.part("tidy-gateway", """
        server = open(f"{DIR}/server").read()
        older, newer = two(server, [DIR], [DIR], wire="socket", stderr=subprocess.DEVNULL)
        here()
        use("tidy-gateway", newer.ask)
    """))
    stage.beats("tidy-gateway")
    return stage.truth(orphans=[stage.who("older")], in_use=[agent, stage.who("newer")])
