import situation
from situation import scene

@scene("in use", twin="abandoned/let_go")
def a_copy_reads(stage):
    """The agent closed both ends; a forked copy of it keeps the end of the output and reads the results."""
    agent = stage.rests("claude", """
        server = start("mcp-server-batch")
        os.close(server.w)
        copy(lambda: use("copy", lambda: os.read(server.r, 1000) or 1 / 0), alias="copy")
        os.close(server.r)
    """)
    stage.beats("copy")
    return stage.truth(in_use=[agent, "copy", "mcp-server-batch"])

@scene("in use", twin="abandoned/let_go")
def answers_are_read(stage):
    """The agent closed the input of a long job, as one does after the last request, and reads its results."""
    agent = stage.uses("claude", """
        server = start("mcp-server-batch")
        os.close(server.w)
        here()
        use("claude", lambda: os.read(server.r, 1000) or 1 / 0)
    """)
    return stage.truth(in_use=[agent, "mcp-server-batch"])

@scene("mixed", twin="others/wrapper_killed")
@scene(
    "mixed", name="bridge_to_a_home_made_server", twin="abandoned/bridge_that_handed_on", server="server.py", begin="session",
    proxy='"/bin/sh", "-c", f"{BIN}/mcp-proxy --as {alias}; true"',
    about="The same below shells; no rule knows the servers, which are in sessions of their own, as Python's SDK starts them.",
)
def bridge_crashed(stage, server="mcp-server-inner", begin="start", proxy='"mcp-proxy", "--as", alias'):
    """One of two bridges to a server was killed; the agent lives and uses the other one."""
    stage.server(server, "timer", starts=0.5)
    stage.part("mcp-proxy", f"""
        inner = {begin}({server!r}, "--as", f"behind_{{ALIAS}}", start_new_session={begin == "session"})
        serve()
    """)
    agent = stage.uses("claude", f"""
        proxies = [start({proxy}) for alias in ("first", "second")]
        here()
        use("claude", proxies[1].ask)
    """)
    stage.who("first").kill()
    return stage.truth(orphans=["behind_first"], in_use=[agent, "second", "behind_second"])

@scene("in use", twin="abandoned/bridge_to_a_home_made_server")
def bridge_that_handed_on(stage):
    """A bridge to a server that no rule knows handed the wires between the two to another program, and was killed."""
    stage.server("server.py", starts=0.5)
    stage.part("successor", "use('successor', handed().ask)\n")
    stage.part("mcp-proxy", 'hand_on(session("server.py", start_new_session=True), "successor", start_new_session=True)\nserve()\n')
    agent = stage.rests("claude", 'start("mcp-proxy")')
    stage.who("mcp-proxy").kill()
    stage.beats("successor")
    return stage.truth(in_use=[agent, "successor", "server.py"])

@scene("mixed", twin="others/parallel_jobs")
def cancelled_job(stage):
    """One of a gateway's parallel jobs was cancelled and its server let go of; the servers of the others are in use."""
    stage.server("mcp-server-fake", "blocked")
    agent = stage.run(stage.part("hermes", """
        here()
        jobs = [start("mcp-server-fake", "--as", f"job{n}", start_new_session=True) for n in range(4)]
        jobs.pop(1).let_go()
        use("hermes", lambda: [job.ask() for job in jobs])
    """), "gateway", "run")
    stage.beats("hermes")
    return stage.truth(orphans=["job1"], in_use=[agent, *[f"job{n}" for n in (0, 2, 3)]])

@scene("in use")
def duplicates(stage):
    """An agent has three servers with the same arguments in the same directory, one for each of its threads of talk."""
    agent = stage.uses("claude", """
        servers = [start("mcp-server-fake", "/data") for _ in range(3)]
        here()
        tell("servers", " ".join(str(server.pid) for server in servers))
        use("claude", lambda: [server.ask() for server in servers])
    """)
    with open(f"{stage.dir}/servers") as f:
        servers = [situation.Process(pid) for pid in f.read().split()]
    return stage.truth(in_use=[agent, *servers])

@scene("in use")
def feeds_a_pipeline(stage):
    """A host runs `server | reader` in a shell, gives it its input to the end, and reads what comes out."""
    stage.part("reader", "here()\nwhile True:\n    os.write(1, os.read(0, 1000))\n")
    agent = stage.uses("claude", """
        server = start("/bin/sh", "-c", f"{BIN}/mcp-server-batch | {BIN}/reader", asked=False)
        os.write(server.w, b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\\n')
        os.close(server.w)
        here()
        use("claude", lambda: os.read(server.r, 1000) or 1 / 0)
    """)
    return stage.truth(in_use=[agent, "mcp-server-batch", "reader"])

@scene("in use", twin="abandoned/let_go_socket")
def handed_on(stage):
    """The agent handed the wires to another program of it and closed its own ends: the program uses the server."""
    stage.part("worker", """
        server = handed()
        use("worker", server.ask)
    """)
    agent = stage.rests("claude", """
        server = start("mcp-server-fake")
        hand_on(server, "worker")
        server.let_go()
    """)
    stage.beats("worker")
    return stage.truth(in_use=[agent, "worker", "mcp-server-fake"])

@scene("in use", twin="abandoned/let_go")
def http_from_null(stage):
    """A server that speaks HTTP was started with /dev/null for its input, and the agent closed its output."""
    stage.part("mcp-server-web", """
        in_background(answer_calls, listen("tcp"))
        here()
        rest_in_a_thread()
    """)
    agent = stage.run(stage.part("claude", """
        r, w = os.pipe()
        start("mcp-server-web", wire=None, stdout=w)
        os.close(w)
        present("mcp-server-web")
        os.close(r)
        here()
        on_call("claude", lambda: call("tcp", "mcp-server-web"))
    """))
    stage.when_called("claude", stage.who("claude"))
    return stage.truth(in_use=[agent, "mcp-server-web"])

@scene("mixed", twin="abandoned/answers_are_read")
def let_go(stage):
    """The agent closed both of its ends, as a client does that closes a server, and lives."""
    agent = stage.uses("claude", """
        old = start("mcp-server-fake", "--as", "old")
        new = start("mcp-server-fake", "--as", "new")
        old.let_go()
        here()
        use("claude", new.ask)
    """)
    return stage.truth(orphans=["old"], in_use=[agent, "new"])

@scene("mixed", twin="abandoned/handed_on")
def let_go_socket(stage):
    """The same over a socket pair, in a session of its own, below a host that no rule knows."""
    agent = stage.uses("home-made-host", """
        old = start("mcp-server-fake", "--as", "old", wire="socket", start_new_session=True)
        new = start("mcp-server-fake", "--as", "new", wire="socket", start_new_session=True)
        old.let_go()
        here()
        use("home-made-host", new.ask)
    """)
    return stage.truth(orphans=["old"], in_use=[agent, "new"])

@scene("in use", twin="abandoned/let_go")
def one_request_and_its_result(stage):
    """A host gives a server one request and the end of its input, and waits for the result, which takes long."""
    stage.part("mcp-server-batch", """
        here()
        while os.read(0, 65536):
            pass
        wait_for("result")
        use("server", lambda: os.write(1, b'{"jsonrpc": "2.0", "id": 1, "result": {}}\\n'))
    """)
    agent = stage.run(stage.part("home-made-host", """
        server = start("mcp-server-batch", asked=False)
        os.write(server.w, b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\\n')
        os.close(server.w)
        here()
        def result():
            tell("go/result", "")
            return os.read(server.r, 1000) or 1 / 0
        on_call("home-made-host", result)
    """))
    stage.when_called("home-made-host", stage.who("home-made-host"))
    return stage.truth(in_use=[agent, "mcp-server-batch"])

@scene("in use", twin="abandoned/let_go")
def reads_through_a_duplicate(stage):
    """The agent closed the input and the output, of which it had made a duplicate, and reads the results there."""
    agent = stage.uses("claude", """
        server = start("mcp-server-batch")
        kept = os.dup(server.r)
        server.let_go()
        here()
        use("claude", lambda: os.read(kept, 1000) or 1 / 0)
    """)
    return stage.truth(in_use=[agent, "mcp-server-batch"])

@scene("in use")
def results_go_elsewhere(stage):
    """The agent closed both ends, and another process reads the results."""
    stage.part("collector", "here()\nuse('collector', lambda: os.read(0, 1000) or 1 / 0)\n")
    agent = stage.rests("claude", """
        server = start("mcp-server-batch")
        collected(server)
        server.let_go()
    """)
    stage.beats("collector")
    return stage.truth(in_use=[agent, "collector", "mcp-server-batch"])

@scene("orphan", twin="abandoned/sent_to_another")
def sent_and_lost(stage):
    """The agent sent its ends through a unix socket to a program that ended, and closed its own."""
    other = stage.run(stage.part("broker", """
        at = listen("unix")
        here()
        server = Server(*receive_fds(at.accept()[0], 2))
        use("broker", server.ask)
    """))
    stage.run(stage.part("claude", """
        server = start("mcp-server-fake")
        with dial("unix", "broker") as call:
            send_fds(call, server.w, server.r)
        server.let_go()
        here()
        rest()
    """))
    stage.was_used("broker", 2)
    return stage.killed(other, orphans=["mcp-server-fake"])

@scene("in use", twin="abandoned/sent_and_lost")
def sent_and_not_received(stage):
    """The agent sent its ends through a unix socket and closed them; who shall have them takes them later."""
    other = stage.run(stage.part("broker", """
        at = listen("unix")
        call = at.accept()[0]
        here()
        server = []
        def ask():
            if not server:
                server.append(Server(*receive_fds(call, 2)))
            server[0].ask()
        on_call("broker", ask)
    """))
    agent = stage.rests("claude", """
        server = start("mcp-server-fake")
        near = dial("unix", "broker")
        send_fds(near, server.w, server.r)
        server.let_go()
    """)
    stage.when_called("broker", stage.who("broker"))
    return stage.truth(in_use=[agent, other, "mcp-server-fake"])

@scene("in use", twin="abandoned/sent_and_lost")
def sent_to_another(stage):
    """The agent sent its ends through a unix socket to a program that has nothing to do with it, and closed them."""
    other = stage.run(stage.part("broker", """
        at = listen("unix")
        here()
        server = Server(*receive_fds(at.accept()[0], 2))
        use("broker", server.ask)
    """))
    agent = stage.rests("claude", """
        server = start("mcp-server-fake")
        send_fds(dial("unix", "broker"), server.w, server.r)
        server.let_go()
    """)
    stage.beats("broker")
    return stage.truth(in_use=[agent, other, "mcp-server-fake"])

@scene("in use", twin="abandoned/let_go")
def taken_up_again(stage):
    """The agent let go of both wires; another program opened them anew through /proc, and the server, which reads on, serves it."""
    stage.part("mcp-server-fake", """
        here()
        while True:
            read_on()
            time.sleep(0.05)
    """)
    agent = stage.rests("claude", """
        server = start("mcp-server-fake")
        server.let_go()
    """)
    other = stage.uses("proxy", """
        of = f"/proc/{present('mcp-server-fake')}/fd"
        server = Server(os.open(f"{of}/0", os.O_WRONLY), os.open(f"{of}/1", os.O_RDONLY))
        use("proxy", server.ask)
    """)
    return stage.truth(in_use=[agent, other, "mcp-server-fake"])
