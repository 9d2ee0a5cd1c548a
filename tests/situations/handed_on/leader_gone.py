"""The successor's leading thread has ended; another one holds the wires."""
import situation

TRUTH = "in use"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    stage.part("helper.py", """
        server = handed()
        in_background(use, "helper", server.ask)
        # The thread alone: exit(2), not exit_group(2), which libc's wrapper would call.
        libc.syscall({"x86_64": 60, "aarch64": 93}[os.uname().machine], 0)
    """)
    first = stage.run(stage.part("claude", """
        hand_on(start("mcp-server-fake"), "helper.py")
    """))
    stage.beats("helper")
    situation.within("the first's end", lambda: not first.alive())
    return stage.truth(in_use=[stage.who("helper.py"), stage.who("mcp-server-fake")])
