"""A server is a debugger, attached to a person's program, which would end with it; the agent is killed."""

TRUTH = "in use"
TWIN = "clients/debugger"


def build(stage):
    stage.part("mcp-server-lldb", """
        # PTRACE_SEIZE with PTRACE_O_EXITKILL, as lldb-server attaches.
        libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        checked(libc.ptrace(PTRACE_SEIZE, present("program"), None, 0x100000), "ptrace")
        serve()
    """)
    stage.run(stage.part("program", "here()\nuse('program', lambda: None)\n"))
    program = stage.who("program")
    agent = stage.agent("mcp-server-lldb")
    stage.beats("program")
    agent.kill()
    return stage.truth(in_use=[program, stage.who("mcp-server-lldb")])
