import software
import textwrap
from situation import scene

@scene(
    "in use", name="newer_is_idle_too", twin="idle_duplicates/idle", works="lambda: None",
    about="The agent works, and calls neither of them for now.",
)
@scene(
    "in use", name="older_is_in_use", twin="idle_duplicates/idle", works="older.ask", idle="newer",
    about="The agent calls the older one; the newer one does nothing.",
)
@scene(
    "in use", name="other_arguments", twin="idle_duplicates/idle", servers='two(older=["/srv/a"], newer=["/srv/b"])',
    about="The newer one has other arguments: it is another server.",
)
@scene(
    "in use", name="other_environment", twin="idle_duplicates/idle",
    servers='[start("mcp-server-fake", env={**os.environ, "DATABASE": name}) for name in "ab"]',
    about="The newer one was started with another environment: it may work for another database.",
)
@scene(
    "in use", name="without_a_rule", twin="idle_duplicates/idle", agent="claude",
    about="The same, and no rule of the agent has idle_duplicates.",
)
def kept(stage, agent="tidy-gateway", servers="two()", works="newer.ask", idle="older"):
    process = stage.uses(agent, f"""
        signal.pthread_sigmask(signal.SIG_BLOCK, {{signal.SIGUSR1}})
        older, newer = {servers}
        here("older", older.pid)
        here("newer", newer.pid)
        here()
        threading.Thread(target=use, args=("{agent}", {works})).start()
        on_call("{idle}", {idle}.ask)
    """)
    stage.when_called(idle, stage.who(agent))
    return stage.truth(in_use=[process, "older", "newer"])

@scene("in use", twin="idle_duplicates/idle")
def other_agent(stage):
    """The newer one belongs to another agent."""
    gateway = stage.part("tidy-gateway", """
        server = start("mcp-server-fake")
        here("older" if ALIAS == "first" else "newer", server.pid)
        if ALIAS == "second":
            here()
            use("second", server.ask)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
        here()
        threading.Thread(target=use, args=("busy", lambda: None)).start()
        on_call("first", server.ask)
    """)
    first = stage.run(gateway, "--as", "first")
    stage.when_called("first", stage.who("first"))
    second = stage.run(gateway, "--as", "second")
    stage.beats("second")
    return stage.truth(in_use=[first, second, "older", "newer"])

@scene("mixed", twin="idle_duplicates/without_a_rule")
@scene(
    "in use", name="resumes", twin="idle_duplicates/idle", resumes=True,
    about="Now and then the agent calls the older one, too: its thread goes on.",
)
@scene(
    "mixed", name="published_node", twin="idle_duplicates/published_node_resumes", needs=["npm"], published="node",
    about="Two published servers on node, at sockets as clients on node make them: the older one does nothing.",
)
@scene(
    "in use", name="published_node_resumes", twin="idle_duplicates/published_node", needs=["npm"], published="node", resumes=True,
    about="The same, and now and then the agent calls the older one, too.",
)
@scene(
    "mixed", name="published_python", twin="idle_duplicates/published_node_resumes", needs=["python2"], published="python",
    about="Two published servers on Python, at pipes: the older one does nothing.",
)
def idle(stage, published=None, resumes=False):
    """A duplicate does nothing while a newer one is in use, and the agent's rule has idle_duplicates."""
    servers = "two()"
    if published == "node":
        servers = f'two("{software.npm_bin("mcp-server-filesystem")}", [DIR], [DIR], wire="socket", stderr=subprocess.DEVNULL)'
    elif published == "python":
        servers = f'two("{software.venv_bin("PYTHON2", "mcp-server-git")}", stderr=subprocess.DEVNULL)'
    agent = stage.uses("tidy-gateway", f"""
        older, newer = {servers}
        here()
        def both():
            for _ in range(6):
                newer.ask()
                time.sleep(0.25)
            older.ask()
        use("tidy-gateway", {"both" if resumes else "newer.ask"})
    """)
    if resumes:
        return stage.truth(in_use=[agent, "older", "newer"])
    return stage.truth(orphans=["older"], in_use=[agent, "newer"])

@scene("in use", twin="idle_duplicates/idle")
def sends_notifications(stage):
    """Nobody calls the older one: it tells the agent of something now and then, which the agent waits for."""
    stage.part("mcp-server-watcher", """
        def notify():
            while True:
                time.sleep(1.5)
                os.write(1, b'{"jsonrpc": "2.0", "method": "notifications/resources/updated"}\\n')
        while data := os.read(0, 65536):
            answer(data)
            if b"subscribe" in data:
                threading.Thread(target=notify).start()
    """)
    agent = stage.run(stage.part("tidy-gateway", """
        def notified():
            if not os.read(older.r, 65536):
                raise EOFError
        older, newer = two("mcp-server-watcher")
        older.ask("resources/subscribe")
        here()
        threading.Thread(target=use, args=("tidy-gateway", newer.ask)).start()
        use("older", notified)
    """))
    stage.beats("older")
    stage.beats("tidy-gateway")
    return stage.truth(in_use=[agent, "older", "newer"])

def slow(stage, work, called):
    """The older one has been asked something, does this `work` and answers when `called`, which is when the judgement is over."""
    stage.part("mcp-server-slow", "def slow():\n" + textwrap.indent(textwrap.dedent(work).strip("\n"), "    ") + textwrap.dedent("""
        pending = b""
        while data := os.read(0, 65536):
            *lines, pending = (pending + data).split(b"\\n")
            for line in lines:
                if b"slow" in line:
                    slow()
                answer(line)
    """))
    agent = stage.uses("tidy-gateway", """
        older, newer = two("mcp-server-slow")
        tell("beats/older", "0")
        os.write(older.w, b'{"jsonrpc": "2.0", "id": 1, "method": "slow"}\\n')
        present("at-work")
        here()
        def both():
            newer.ask()
            if select.select([older.r], [], [], 0)[0]:
                older.take()
                tell("beats/older", "1")
        use("tidy-gateway", both)
    """)
    stage.when_called("older", stage.who(called))
    return stage.truth(in_use=[agent, "older", "newer", *{called} - {"older"}])

@scene("in use", twin="idle_duplicates/idle")
def slow_answer_over_the_network(stage):
    """The older one has been asked something, and waits for the answer of a service at a TCP port."""
    stage.run(stage.part("service", """
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
        listener = socket.create_server(("127.0.0.1", 0))
        tell("port", str(listener.getsockname()[1]))
        here()
        caller, _ = listener.accept()
        signal.sigwait({signal.SIGUSR1})
        caller.send(b"1")
        rest()
    """))
    stage.who("service")
    return slow(stage, """
        with socket.create_connection(("127.0.0.1", int(open(f"{DIR}/port").read()))) as service:
            here("at-work")
            service.recv(1)
    """, "service")

@scene("in use", twin="idle_duplicates/idle")
def slow_answer_by_datagram(stage):
    """The older one has been asked something, and waits for the answer of a service over UDP."""
    stage.run(stage.part("service", """
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
        service = listen("udp")
        here()
        caller = service.recvfrom(10)[1]
        signal.sigwait({signal.SIGUSR1})
        service.sendto(b"1", caller)
        rest()
    """))
    stage.who("service")
    return slow(stage, """
        service = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        service.sendto(b"?", ("127.0.0.1", int(open(f"{DIR}/go/service.udp").read())))
        here("at-work")
        service.recv(1)
    """, "service")

@scene("in use", twin="idle_duplicates/idle")
def slow_call(stage):
    """The older one has been asked something, and sleeps over it: its tool takes longer than idle_duplicates."""
    return slow(stage, """
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
        here("at-work")
        signal.sigtimedwait({signal.SIGUSR1}, 3600)
    """, "older")

@scene("in use", twin="idle_duplicates/idle")
def slow_tool(stage):
    """The older one has been asked something, and waits for a program that it runs, which rests for now."""
    return slow(stage, """
        tool = subprocess.Popen(["/bin/sh", "-c", "trap 'exit 0' USR1; sleep 3600 & wait"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        here("tool", tool.pid)
        time.sleep(0.5)
        here("at-work")
        tool.wait()
    """, "tool")

@scene("in use", twin="idle_duplicates/idle")
def worker_has_the_wires(stage):
    """A forked copy of the agent has the wires of the older one, and may use it."""
    agent = stage.uses("tidy-gateway", """
        older, newer = two()
        copy(lambda: on_call("worker", older.ask), alias="worker")
        here()
        use("tidy-gateway", newer.ask)
    """)
    stage.when_called("worker", stage.who("worker"))
    return stage.truth(in_use=[agent, "worker", "older", "newer"])
