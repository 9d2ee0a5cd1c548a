"""An agent's shell started `nohup server &` with files for its streams, and the shell was killed; the agent lives."""

TRUTH = "in use"


def build(stage):
    stage.part("mcp-server-batch", "here()\nuse('batch', lambda: os.write(1, b'{}\\\\n'))\n")
    agent = stage.run(stage.part("claude", """
        job = shell(f"nohup {BIN}/mcp-server-batch > results 2>&1 < /dev/null & wait", wait=False)
        present("mcp-server-batch")
        job.kill()
        job.wait()
        here()
        rest()
    """))
    stage.who("claude")
    stage.beats("batch")
    stage.grows("results")
    return stage.truth(in_use=[agent, stage.who("mcp-server-batch")])
