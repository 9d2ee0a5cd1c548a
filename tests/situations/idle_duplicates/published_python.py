"""Two published servers on Python, at pipes: the older one does nothing."""
import software

TRUTH = "mixed"
TWIN = "idle_duplicates/published_node_resumes"
NEEDS = ["python2"]


def build(stage):
    stage.write("server", software.venv_bin("PYTHON2", "mcp-server-git"))
    agent = stage.run(stage.part("tidy-gateway", """
        server = open(f"{DIR}/server").read()
        older, newer = two(server, stderr=subprocess.DEVNULL)
        here()
        use("tidy-gateway", newer.ask)
    """))
    stage.beats("tidy-gateway")
    return stage.truth(orphans=[stage.who("older")], in_use=[agent, stage.who("newer")])
