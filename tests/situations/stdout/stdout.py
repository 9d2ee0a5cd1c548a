import os
import textwrap
import situation
from situation import scene

# It reads the results one after the other.
READS = "here()\nuse('collector', lambda: os.read(0, 1000) or 1 / 0)\n"

@scene("in use", twin="orphans/before", when="before")
def before(stage):
    """Before the daemon came: `cat requests | server | sed > results &`, adopted by init, at work."""
    agent = stage.rests("claude", 'shell(f"echo {{}} | {BIN}/mcp-server-batch 2> /dev/null | sed -u s/x/y/ > results 2> /dev/null &")')
    server = stage.who("mcp-server-batch")
    stage.grows("results")
    agent.kill()
    stage.adopted(server)
    return stage.truth(in_use=[server, *[p for p in stage.find("sed") if p.argv()[0] == "sed"]])

@scene("in use", twin="orphans/before_then_killed", when="before")
def before_alive(stage):
    """Before the daemon came: an agent at work with its server, nothing wrong."""
    agent = stage.uses("claude", """
        here()
        use("claude", start("mcp-server-fake").ask)
    """)
    return stage.truth(in_use=[agent, "mcp-server-fake"])

@scene("in use", when="before")
def before_session(stage):
    """Before the daemon came: a copy of the agent in a session of its own works on, the agent is dead."""
    agent = stage.run(stage.part("claude", """
        server = start("mcp-server-fake", wire="socket")
        copy(lambda: use("copy", server.ask), setsid=True, alias="copy")
        present("copy")
    """))
    stage.beats("copy")
    situation.within("the agent's end", lambda: not agent.alive())
    stage.adopted(stage.who("mcp-server-fake"))
    return stage.truth(in_use=["copy", "mcp-server-fake"])

@scene("in use", twin="orphans/before", when="before")
def before_successor(stage):
    """Before the daemon came: a successor was handed both wires; server and successor are adopted by init."""
    stage.part("helper.py", "use('helper', handed().ask)\n")
    agent = stage.run(stage.part("claude", """
        hand_on(start("mcp-server-fake"), "helper.py")
    """))
    stage.beats("helper")
    situation.within("the agent's end", lambda: not agent.alive())
    stage.adopted(stage.who("mcp-server-fake"))
    return stage.truth(in_use=["helper.py", "mcp-server-fake"])

def masks(stage):
    """`op run`: a launcher that hands its input on, and passes the output on through a pipe of its own, without the secrets."""
    stage.write("masks.py", textwrap.dedent("""
        import os, subprocess, sys
        passed, output = os.pipe()
        subprocess.Popen(sys.argv[1:], stdout=output)
        os.close(output)
        while data := os.read(passed, 65536):
            os.write(1, data)
    """))
    os.symlink(situation.PYTHON, f"{stage.dir}/bin/op")

@scene("in use", twin="orphans/output_is_masked")
def masked_into_a_file(stage):
    """An agent runs `op run -- server > results`: a launcher that masks secrets passes the results on into a file; the agent is killed."""
    masks(stage)
    agent = stage.rests("claude", """
        requests, w = os.pipe()
        start("op", f"{DIR}/masks.py", f"{BIN}/mcp-server-batch", wire=None, stdin=requests, stdout=open(f"{DIR}/results", "w"))
        os.write(w, b"{}")
    """)
    stage.who("mcp-server-batch")
    stage.grows("results")
    return stage.killed(agent, in_use=["mcp-server-batch"])

@scene("orphan", name="orphans/output_is_masked", twin="stdout/masked_into_a_file")
def output_is_masked(stage):
    """The agent started its server by `op run`, which masks secrets in the answers; the agent is killed, both stay."""
    masks(stage)
    agent = stage.rests("claude", 'start("op", f"{DIR}/masks.py", f"{BIN}/mcp-server-fake")')
    return stage.killed(agent, orphans=[*stage.find("mcp-server-fake"), *stage.find("op")])

@scene("in use")
def older_reader(stage):
    """The results are read by a collector that is older than the agent and was sent the read end."""
    collector = stage.run(stage.part("collector", """
        conn = listen("unix").accept()[0]
        r, = receive_fds(conn, 1)
        conn.close()
        use("collector", lambda: os.read(r, 1000) or 1 / 0)
    """))
    agent = stage.rests("claude", """
        server = start("mcp-server-batch")
        send_fds(dial("unix", "collector"), server.r)
        os.close(server.w)
    """)
    stage.beats("collector")
    return stage.killed(agent, in_use=[collector, "mcp-server-batch"])

@scene("in use", twin="orphans/flight_cancelled")
def reader_in_flight(stage):
    """The read end of the results lies in a unix socket, sent by the agent, which was killed, not received yet."""
    user = stage.run(stage.part("collector", """
        conn = listen("unix").accept()[0]
        ends = []
        def read():
            if not ends:
                ends.extend(receive_fds(conn, 1))
            if not os.read(ends[0], 1000):
                raise EOFError
        on_call("collector", read)
    """))
    agent = stage.rests("claude", """
        server = start("mcp-server-batch")
        os.close(server.w)
        conn = dial("unix", "collector")
        send_fds(conn, server.r)
    """)
    stage.when_called("collector", user)
    return stage.killed(agent, in_use=[user, "mcp-server-batch"])

@scene("in use")
def reader_in_own_table(stage):
    """A thread with a descriptor table of its own reads the results; the agent is killed."""
    stage.part("collector", """
        here()
        r = os.dup(0)
        os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
        in_own_table(lambda: use("collector", lambda: os.read(r, 1000) or 1 / 0), r)
        rest()
    """)
    agent = stage.rests("claude", """
        server = start("mcp-server-batch")
        collected(server)
    """)
    stage.beats("collector")
    return stage.killed(agent, in_use=["collector", "mcp-server-batch"])

@scene("in use", twin="orphans/stderr_is_read")
def reader_waits(stage):
    """Somebody waits for a result that takes long: neither reader nor server does anything for now."""
    stage.part("mcp-server-slow", """
        answer(os.read(0, 65536))
        here()
        signal.signal(signal.SIGUSR1, lambda *_: os.write(1, b"result\\n"))
        rest()
    """)
    stage.part("collector", """
        tell("beats/collector", "0")
        here()
        if os.read(0, 1000) == b"result\\n":
            use("collector", lambda: None)
    """)
    agent = stage.rests("claude", """
        server = start("mcp-server-slow")
        collected(server)
    """)
    server, collector = stage.who("mcp-server-slow"), stage.who("collector")
    stage.when_called("collector", server)
    return stage.killed(agent, in_use=[server, collector])

@scene("in use", twin="orphans/closed_stdin")
def server_closed_stdin(stage):
    """The server closed its own input and works off what it was asked; a successor of the agent reads the results."""
    stage.part("mcp-server-batch", """
        here()
        os.read(0, 65536)
        os.close(0)
        while True:
            os.write(1, b'{"result":{}}\\n')
            time.sleep(0.2)
    """)
    stage.part("collector", READS)
    agent = stage.rests("claude", """
        server = start("mcp-server-batch")
        collected(server)
    """)
    stage.beats("collector")
    return stage.killed(agent, in_use=["collector", "mcp-server-batch"])

@scene("in use", twin="orphans/reader_gone")
def stdin_closed(stage):
    """The agent asked for a long job, gave the reading of its results to another, closed the server's input and ended."""
    stage.part("collector", READS)
    agent = stage.run(stage.part("claude", """
        server = start("mcp-server-batch")
        collected(server)
        server.let_go()
    """))
    stage.beats("collector")
    return stage.ended(agent, in_use=["collector", "mcp-server-batch"])

@scene("in use", twin="orphans/reader_gone")
def stdin_closed_socket(stage):
    """The agent asked for a long job over a socket pair, shut its writing side down, gave the reading to another and ended."""
    stage.part("collector", READS)
    agent = stage.run(stage.part("claude", """
        server = start("mcp-server-batch", wire="socket")
        collected(server)
        socket.socket(fileno=server.w).shutdown(socket.SHUT_WR)
    """))
    stage.beats("collector")
    return stage.ended(agent, in_use=["collector", "mcp-server-batch"])

@scene("in use", twin="orphans/reader_gone")
def tee(stage):
    """A `tee` reads the server's output on behalf of a person's program; the agent is killed."""
    os.mkfifo(f"{stage.dir}/copy")
    person = stage.run(stage.part("person", """
        copied = os.open(f"{DIR}/copy", os.O_RDONLY)
        use("person", lambda: os.read(copied, 1000) or 1 / 0)
    """))
    agent = stage.rests("claude", """
        server = start("mcp-server-batch")
        start("/usr/bin/tee", f"{DIR}/copy", wire=None, stdin=server.r)
    """)
    stage.beats("person")
    agent.kill()
    return stage.truth(in_use=[person, "mcp-server-batch", *stage.find("tee")])
