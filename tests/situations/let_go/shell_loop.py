"""The same with a loop of the shell's own: a forked shell that inherits the wires and then turns to its log."""

TRUTH = "mixed"
TWIN = "orphans/shell_job_that_is_waited_for"


def build(stage):
    stage.part("step", "here()\nprint('step')\n")
    stage.part("mcp-server-shell", """
        subprocess.run(["/bin/bash", "-c", f"(while :; do {BIN}/step; sleep 0.2; done) > {DIR}/loop.log 2>&1 & disown"])
        present("step")
        serve()
    """)
    agent = stage.agent("mcp-server-shell")

    stage.grows("loop.log")
    loop = [p for p in stage.find("bash") if "while" in " ".join(p.argv())]
    agent.kill()
    return stage.truth(in_use=loop, orphans=[stage.who("mcp-server-shell")])
