"""A server started ssh-agent, which makes itself a daemon; the session ends cleanly, the keys are in use."""
import situation

TRUTH = "in use"


def build(stage):
    stage.part("ssh-agent", """
        listener = listen("unix")
        def daemon():
            os.setsid()
            null = os.open("/dev/null", os.O_RDWR)
            for fd in range(3):
                os.dup2(null, fd)
            here()
            answer_calls(listener)
        copy(daemon)
    """)
    stage.part("mcp-server-git", """
        subprocess.run([f"{BIN}/ssh-agent"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        present("ssh-agent")
        serve("exit")
    """)
    agent = stage.run(stage.part("claude", """
        server = start("mcp-server-git")
        server.let_go()
        server.child.wait()
    """))
    stage.run(stage.part("ssh", "use('ssh', lambda: call('unix', 'ssh-agent'))\n"))
    stage.beats("ssh")
    situation.within("the agent's end", lambda: not agent.alive())
    return stage.truth(in_use=[stage.who("ssh-agent")])
