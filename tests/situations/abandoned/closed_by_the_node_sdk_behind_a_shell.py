"""The agent closed one of two servers behind `sh` and a launcher, as the Node SDK does: the launcher outlives the shell."""

TRUTH = "mixed"
TWIN = "abandoned/a_copy_reads"


def build(stage):
    stage.server("mcp-server-fake", "deaf")
    stage.part("uvx", """
        server = subprocess.Popen([f"{BIN}/mcp-server-fake", *sys.argv[2:]])
        signal.signal(signal.SIGTERM, lambda *_: server.terminate())
        server.wait()
    """)
    agent = stage.run(stage.part("claude", """
        line = f"trap '' TERM; {BIN}/uvx mcp-server-fake --as "
        old, new = [start("/bin/sh", "-c", line + name + "; true") for name in ("old", "new")]
        os.close(old.w)
        old.child.terminate()
        old.child.kill()
        old.child.wait()
        here()
        use("claude", new.ask)
    """))
    stage.beats("claude")
    return stage.truth(orphans=[stage.who("old")], in_use=[agent, stage.who("new")])
