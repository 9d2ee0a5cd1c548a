from situation import scene

@scene("in use")
def cron_waits_for_the_output(stage):
    """A job of cron, `timeout 7200 server`: cron has closed its input and reads its output until the end, for the mail."""
    cron = stage.uses("cron", """
        job = start("/bin/sh", "-c", f"timeout 7200 {BIN}/mcp-server-batch; true", start_new_session=True)
        os.close(job.w)
        here()
        use("cron", lambda: os.read(job.r, 1000) or 1 / 0)
    """)
    return stage.truth(in_use=[cron, "mcp-server-batch", *stage.find("timeout")])

@scene("in use")
def goes_on_as_a_service(stage):
    """A launcher is told to start a service: the service closed its standard streams by itself, the agent closed its ends, and lives."""
    stage.part("mcp-server-fake", """
        answer(os.read(0, 65536))
        goes_into_the_background()
        here()
        use("service", lambda: None)
    """)
    agent = stage.rests("claude", """
        server = start("mcp-server-fake")
        present("mcp-server-fake")
        server.let_go()
    """)
    stage.beats("service")
    return stage.truth(in_use=[agent, "claude", "mcp-server-fake"])

def dials(stage, listener):
    """A server that answers over a connection that it makes to this program."""
    stage.part("mcp-server-fake", f"""
        channel = dial("unix", {listener!r})
        channel.settimeout(None)
        def attend():
            while channel.recv(100):
                channel.sendall(b"pong")
        in_background(attend)
        serve()
    """)

@scene("in use", twin="abandoned/let_go")
def goes_on_over_a_connection_back(stage):
    """A living host closed the standard streams and talks over a connection that the server made to it."""
    dials(stage, "claude")
    agent = stage.uses("claude", """
        listener = listen("unix")
        server = start("mcp-server-fake")
        channel = listener.accept()[0]
        listener.close()
        server.let_go()
        here()
        use("claude", lambda: ask_over(channel))
    """)
    return stage.truth(in_use=[agent, "mcp-server-fake"])

@scene("in use", twin="abandoned/let_go")
def goes_on_over_a_connection_to_a_broker(stage):
    """A living host closed the standard streams; a broker that it started talks over a connection that the server made to that."""
    dials(stage, "broker")
    stage.part("broker", """
        channel = listen("unix").accept()[0]
        here()
        use("broker", lambda: ask_over(channel))
    """)
    agent = stage.rests("chat_host.py", """
        start("broker", wire=None)
        start("mcp-server-fake").let_go()
    """)
    stage.beats("broker")
    return stage.truth(in_use=[agent, "broker", "mcp-server-fake"])

@scene("in use", twin="abandoned/let_go")
def goes_on_over_a_third_channel(stage):
    """A living host closed the standard streams of its server and talks to it over an IPC channel on fd 3."""
    stage.part("mcp-server-fake", """
        channel = socket.socket(fileno=int(argument("--ipc")))
        def attend():
            while channel.recv(100):
                channel.sendall(b"pong")
        in_background(attend)
        serve()
    """)
    agent = stage.uses("claude", """
        near, far = socket.socketpair()
        server = start("mcp-server-fake", "--ipc", str(far.fileno()), pass_fds=[far.fileno()])
        far.close()
        server.let_go()
        here()
        use("claude", lambda: ask_over(near))
    """)
    return stage.truth(in_use=[agent, "mcp-server-fake"])

@scene("mixed", twin="abandoned/leaves_a_daemon_on_its_wires")
def leaves_a_daemon(stage):
    """A server had started a daemon of its kind (gradle, adb, watchman); the agent closed the server, which stays."""
    stage.part("tool-daemon", """
        in_background(answer_calls, listen("abstract"))
        here()
        rest_in_a_thread()
    """)
    stage.part("mcp-server-fake", """
        null = subprocess.DEVNULL
        if os.fork() == 0:
            os.setsid()
            subprocess.Popen([f"{BIN}/tool-daemon"], stdin=null, stdout=null, stderr=null)
            os._exit(0)
        os.wait()
        present("tool-daemon")
        serve("timer")
    """)
    agent = stage.run(stage.part("claude", """
        server = start("mcp-server-fake")
        server.let_go()
        here()
        on_call("claude", lambda: call("abstract", "tool-daemon"))
    """))
    stage.when_called("claude", stage.who("claude"))
    return stage.truth(orphans=["mcp-server-fake"], in_use=[agent, "tool-daemon"])

@scene("in use", twin="abandoned/leaves_a_daemon")
def leaves_a_daemon_on_its_wires(stage):
    """The same; the daemon inherited the server's standard streams, as adb's does, and others call it."""
    stage.part("tool-daemon", """
        in_background(answer_calls, listen("tcp"))
        here()
        rest_in_a_thread()
    """)
    stage.part("mcp-server-fake", """
        if os.fork() == 0:
            os.setsid()
            subprocess.Popen([f"{BIN}/tool-daemon"])
            os._exit(0)
        os.wait()
        present("tool-daemon")
        serve("exit")
    """)
    agent = stage.run(stage.part("claude", """
        server = start("mcp-server-fake")
        server.let_go()
        server.child.wait()
        here()
        on_call("claude", lambda: call("tcp", "tool-daemon"))
    """))
    stage.when_called("claude", stage.who("claude"))
    return stage.truth(in_use=[agent, "tool-daemon"])

@scene("in use")
def nohup_goes_on(stage):
    """An agent's shell started `nohup server &` with files for its streams, and the shell was killed; the agent lives."""
    stage.part("mcp-server-batch", "here()\nuse('batch', lambda: os.write(1, b'{}\\\\n'))\n")
    agent = stage.rests("claude", """
        job = shell(f"nohup {BIN}/mcp-server-batch > results 2>&1 < /dev/null & wait", wait=False)
        present("mcp-server-batch")
        job.kill()
        job.wait()
    """)
    stage.beats("batch")
    stage.grows("results")
    return stage.truth(in_use=[agent, "mcp-server-batch"])

@scene("in use")
def requests_from_a_file(stage):
    """An agent's shell runs `server < requests.jsonl | reader` on a long list of requests; the agent lives."""
    stage.part("reader", "here()\nuse('reader', lambda: os.read(0, 1000) or 1 / 0)\n")
    stage.write("requests.jsonl", '{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
    agent = stage.run(stage.part("claude", """
        here()
        shell(f"{BIN}/mcp-server-batch < requests.jsonl | {BIN}/reader")
        rest()
    """))
    stage.beats("reader")
    return stage.truth(in_use=[agent, "mcp-server-batch", "reader"])

@scene("in use")
def requests_from_a_here_document(stage):
    """An agent's shell feeds a server from a here-document, which is a pipe that is closed at once, and reads on."""
    stage.part("reader", "here()\nuse('reader', lambda: os.read(0, 1000) or 1 / 0)\n")
    agent = stage.run(stage.part("claude", """
        here()
        request = '{"jsonrpc": "2.0", "id": 1, "method": "ping"}'
        shell(f"{BIN}/mcp-server-batch <<'END' | {BIN}/reader\\n{request}\\nEND")
        rest()
    """))
    stage.beats("reader")
    return stage.truth(in_use=[agent, "mcp-server-batch", "reader"])

@scene("in use")
def serves_http_too(stage):
    """The agent closed both ends and goes on over HTTP, which the server speaks too, with long pauses."""
    stage.listens("mcp-server-web", "tcp")
    agent = stage.run(stage.part("claude", """
        server = start("mcp-server-web")
        server.let_go()
        here()
        on_call("claude", lambda: call("tcp", "mcp-server-web"))
    """))
    stage.when_called("claude", stage.who("claude"))
    return stage.truth(in_use=[agent, "mcp-server-web"])

@scene("in use", twin="abandoned/let_go")
def shared_over_a_socket(stage):
    """Two agents use a server over its named socket; the one that started it has let go of the wires, and is not needed."""
    stage.part("mcp-server-shared", """
        in_background(answer_calls, listen("unix"))
        serve("blocked")
    """)
    first = stage.rests("claude", """
        server = start("mcp-server-shared")
        server.let_go()
    """)
    second = stage.run(stage.part("codex", """
        here()
        on_call("codex", lambda: call("unix", "mcp-server-shared"))
    """))
    stage.when_called("codex", stage.who("codex"))
    return stage.truth(in_use=[first, second, "mcp-server-shared"])

@scene("in use", twin="abandoned/updates_itself_and_starts_anew")
def updates_itself(stage):
    """An agent updates itself in place, the same process runs the next version, which goes on with the server."""
    agent = stage.uses("claude", """
        if "--wires" in sys.argv:
            use("claude", handed().ask)
        server = start("mcp-server-fake")
        for end in (server.w, server.r):
            os.set_inheritable(end, True)
        become("claude", *words(server))
    """)
    return stage.truth(in_use=[agent, "mcp-server-fake"])

@scene("mixed", twin="abandoned/updates_itself")
def updates_itself_and_starts_anew(stage):
    """An agent updates itself in place: its wires end with the exec, and the next version starts a server of its own."""
    agent = stage.uses("claude", """
        if "--anew" not in sys.argv:
            start("mcp-server-fake", "--as", "old")
            become("claude", "--anew")
        new = start("mcp-server-fake", "--as", "new")
        here()
        use("claude", new.ask)
    """)
    return stage.truth(orphans=["old"], in_use=[agent, "new"])
