from situation import scene

@scene("in use", twin="orphans/silent_listener")
def calls_that_are_reset(stage):
    """The server speaks HTTP too; its client resets its short connections, which leaves no trace in any table. The agent is killed."""
    stage.listens("mcp-server-web", "tcp")
    agent = stage.agent("mcp-server-web")
    stage.uses("person", """
        def call_and_reset():
            with dial("tcp", "mcp-server-web") as connection:
                ask_over(connection)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        use("person", call_and_reset)
    """)
    return stage.killed(agent, in_use=["mcp-server-web"])

@scene("in use", twin="orphans/silent_listener")
def half_closed(stage):
    """A client has sent its request and closed its writing side, and waits for the answer; the agent is killed."""
    stage.part("mcp-server-web", """
        def work():
            caller = listen("tcp").accept()[0]
            while caller.recv(100):
                pass
            here()
            signal.signal(signal.SIGUSR1, lambda *_: caller.sendall(b"pong"))
        answer(os.read(0, 65536))
        work()
        serve()
    """)
    agent = stage.run(stage.part("claude", """
        start("mcp-server-web")
        here("claude")
        rest()
    """))
    stage.who("claude")
    person = stage.run(stage.part("person", """
        tell("beats/person", "0")
        connection = dial("tcp", "mcp-server-web")
        connection.settimeout(None)
        connection.sendall(b"ping")
        connection.shutdown(socket.SHUT_WR)
        if connection.recv(100) == b"pong":
            use("person", lambda: None)
    """))
    server = stage.who("mcp-server-web")
    stage.when_called("person", server)
    return stage.killed(agent, in_use=[server, person])

@scene("in use", twin="orphans/silent_listener")
def last_call_a_moment_ago(stage):
    """A client calls now and then, the last time a moment ago; at the look nothing is connected."""
    stage.listens("mcp-server-web", "tcp")
    agent = stage.agent("mcp-server-web")
    person = stage.when_over("person", """
        call("tcp", "mcp-server-web")
        on_call("person", lambda: call("tcp", "mcp-server-web"), every=20)
    """)
    return stage.killed(agent, in_use=["mcp-server-web"])

@scene("in use", twin="orphans/ring_of_short_calls")
def call_from_a_port_of_a_sibling(stage):
    """A server called its sibling once over TCP; somebody else's client got the same port and called, too; their agent is killed."""
    stage.listens("mcp-server-web", "tcp")
    # None of those that the kernel gives to a connection that asks for none: nobody else in the table gets it.
    stage.part("mcp-server-other", 'port = 20_000 + os.getpid() % 10_000\ncall_from("mcp-server-web", port)\ntell("go/port", str(port))\nserve()\n')
    agent = stage.rests("claude", 'start("mcp-server-web")\nstart("mcp-server-other")\n')
    person = stage.when_over("person", """
        while not os.path.exists(f"{DIR}/go/port"):
            time.sleep(0.02)
        with open(f"{DIR}/go/port") as f:
            port = int(f.read())
        call_from("mcp-server-web", port)
        on_call("person", lambda: call_from("mcp-server-web", port), every=20)
    """)
    return stage.killed(agent, orphans=["mcp-server-other"], in_use=["mcp-server-web"])

@scene("in use", twin="orphans/silent_listener")
def short_calls(stage):
    """The server speaks HTTP too; its client uses short connections and closes first (TIME_WAIT at the client). The agent is killed."""
    stage.listens("mcp-server-web", "tcp")
    agent = stage.agent("mcp-server-web")
    stage.uses("person", "use('person', lambda: call('tcp', 'mcp-server-web'))\n")
    return stage.killed(agent, in_use=["mcp-server-web"])

@scene("in use", twin="orphans/silent_listener")
def short_calls_closed_by_the_server(stage):
    """The server speaks HTTP too; its client uses short connections and the server closes first (TIME_WAIT there). The agent ends."""
    stage.part("mcp-server-web", """
        in_background(answer_calls, listen("tcp"), closes="server")
        serve()
    """)
    agent = stage.run(stage.part("claude", """
        start("mcp-server-web", wire="socket")
        here()
    """))
    stage.who("claude")
    stage.uses("person", "use('person', lambda: call('tcp', 'mcp-server-web', 'server'))\n")
    return stage.ended(agent, in_use=["mcp-server-web"])

@scene("in use", twin="orphans/silent_listener_of_an_unknown_host")
@scene(
    "in use", name="hub_at_its_usual_port", twin="orphans/silent_listener", agent="opencode", server="mcp-hub",
    about="An agent starts a hub with node's pipes and says nothing to it; a person calls its usual port later; the agent is killed.",
)
def service_of_a_manager(stage, agent="manager.js", server="acme-mcp-server"):
    """A manager that no rule knows starts a service with node's pipes; a person calls its usual port later; the manager is killed."""
    stage.part(server, """
        listener = listen("tcp")
        here()
        answer_calls(listener)
    """)
    agent = stage.rests(agent, f'start("{server}", asked=False, wire="socket")\npresent("{server}")')
    stage.when_over("person", f"on_call('person', lambda: call('tcp', '{server}'))\n")
    return stage.killed(agent, in_use=[server])

@scene("in use", twin="orphans/port_that_another_server_sought")
def port_that_another_server_sought(stage):
    """A server could not have the port of another agent's, and asks that one when it is asked itself; the agent of that one is killed."""
    stage.listens("mcp-server-hub", "tcp")
    agent = stage.agent("mcp-server-hub")
    stage.part("mcp-server-follower", """
        seeks_port_of("mcp-server-hub")
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
        in_background(serve)
        on_call("follower", lambda: call("tcp", "mcp-server-hub"))
    """)
    stage.rests("codex", 'start("mcp-server-follower")')
    follower = stage.who("mcp-server-follower")
    stage.when_called("follower", follower)
    return stage.killed(agent, in_use=["mcp-server-hub", follower])

@scene("in use", twin="orphans/silent_listener")
def told_to_serve(stage):
    """A server was told to serve HTTP at a port; another host calls now and then, which leaves no trace here; the agent is killed."""
    stage.listens("mcp-server-web", "tcp")
    agent = stage.rests("claude", 'start("mcp-server-web", "--transport", "streamable-http", "--port", "8931")')
    # A client on another host that closes first leaves nothing on this one. Here it resets the connection, to the same effect.
    person = stage.run(stage.part("person", """
        def visit():
            with dial("tcp", "mcp-server-web") as connection:
                ask_over(connection)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        visit()
        here()
        on_call("person", visit)
    """))
    stage.who("person")
    stage.when_called("person", person)
    return stage.killed(agent, in_use=["mcp-server-web"])

@scene(
    "in use", name="told_to_serve_by_an_option", twin="orphans/silent_listener", option=["--enable-http"],
    about="A server was told by an option to serve HTTP; a person calls its usual port later; the agent is killed.",
)
@scene(
    "in use", name="told_to_serve_at_a_socket", twin="orphans/silent_listener", kind="unix", option=["--socket", "/x"],
    about="A server was told to serve at a unix socket; a person calls there later; the agent is killed.",
)
def told_by_an_option(stage, option=(), kind="tcp"):
    stage.listens("mcp-server-web", kind)
    agent = stage.rests("claude", f'start("mcp-server-web", *{option!r})')
    stage.when_over("person", f"on_call('person', lambda: call('{kind}', 'mcp-server-web'))\n")
    return stage.killed(agent, in_use=["mcp-server-web"])

@scene("in use", twin="orphans/silent_listener")
@scene(
    "in use", name="told_to_serve_by_a_switch", twin="orphans/silent_listener", told=["STREAMABLE_HTTP", "true"],
    about="The same by a variable that turns HTTP on, as published servers have it.",
)
def told_to_serve_by_its_environment(stage, told=("MCP_TRANSPORT", "streamable-http")):
    """A server was told by its environment to serve HTTP; another host calls now and then, which leaves no trace here; the agent is killed."""
    stage.listens("mcp-server-web", "tcp")
    agent = stage.rests("claude", f'start("mcp-server-web", env={{**os.environ, {told[0]!r}: {told[1]!r}}})')
    return stage.killed(agent, in_use=["mcp-server-web"])

@scene("in use", twin="orphans/silent_listener")
def handed_a_listener(stage):
    """A host hands its server a listener (LISTEN_FDS); another host calls now and then, which leaves no trace here; the first is killed."""
    stage.part("mcp-server-web", """
        in_background(answer_calls, socket.socket(fileno=3))
        serve()
    """)
    host = stage.rests("start_server.py", """
        os.dup2(socket.create_server(("127.0.0.1", 0)).detach(), 3)
        start("mcp-server-web", pass_fds=[3], env={**os.environ, "LISTEN_FDS": "1"})
    """)
    return stage.killed(host, in_use=["mcp-server-web"])

@scene("in use", twin="orphans/silent_listener")
def handed_a_listener_without_a_word(stage):
    """A manager keeps a listener, which its host hands on to a server; another host calls now and then, which leaves no trace here; the first is killed."""
    stage.part("mcp-server-web", """
        in_background(answer_calls, socket.socket(fileno=3))
        serve()
    """)
    stage.part("claude", """
        start("mcp-server-web", pass_fds=[3])
        here()
        rest()
    """)
    stage.rests("manager", """
        os.dup2(socket.create_server(("127.0.0.1", 0)).detach(), 3)
        start("claude", wire=None, pass_fds=[3])
    """)
    return stage.killed(stage.who("claude"), in_use=["mcp-server-web"])

@scene("in use", twin="orphans/silent_listener")
def told_its_port_by_its_environment(stage):
    """A server listens at the address that its environment names (`HTTP_ADDR`); another host calls now and then, which leaves no trace here; the agent is killed."""
    stage.part("mcp-server-web", """
        listener = socket.create_server(("127.0.0.1", int(os.environ["HTTP_ADDR"][1:])))
        in_background(answer_calls, listener)
        serve()
    """)
    agent = stage.rests("claude", """
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        start("mcp-server-web", env={**os.environ, "HTTP_ADDR": f":{port}"})
    """)
    return stage.killed(agent, in_use=["mcp-server-web"])

@scene("in use", twin="orphans/silent_listener")
@scene(
    "in use", name="gateway_with_nothing_behind_it", twin="orphans/helper_behind_a_listener", then="inner.child.kill(); inner.child.wait()",
    about="The same, but it starts that server for a call only, and has none just now.",
)
def gateway(stage, then=""):
    """A gateway serves HTTP at its usual port, which nobody told it, and passes requests on to a server; its launcher is killed."""
    stage.server("mcp-server-inner")
    stage.part("mcp-proxy", f'inner = start("mcp-server-inner")\n{then}\nin_background(answer_calls, listen("tcp"))\nserve()\n')
    agent = stage.agent("mcp-proxy") if then else stage.rests("launcher", 'start("mcp-proxy")')
    return stage.killed(agent, in_use=["mcp-proxy"] if then else ["mcp-proxy", "mcp-server-inner"])

@scene("in use", twin="orphans/helper_behind_a_listener", begin="session")
@scene(
    "orphan", name="orphans/helper_behind_a_listener", twin="clients/gateway_of_a_home_made_server", begin="start",
    about="The same, but what it runs there is a helper, to which it does not speak the protocol.",
)
def gateway_of_a_home_made_server(stage, begin):
    """An agent's server listens at a port that nobody told it, and has a server of its own behind it that no rule knows; the agent is killed."""
    stage.part("inventory.py", "time.sleep(0.5)\nhere()\nread_on()\nrest()\n")
    stage.part("mcp-server-gateway", f'inner = {begin}("inventory.py")\nin_background(answer_calls, listen("tcp"))\nserve()\n')
    agent = stage.agent("mcp-server-gateway")
    return stage.killed(agent, **{"in_use" if begin == "session" else "orphans": ["mcp-server-gateway", "inventory.py"]})

@scene("in use", twin="orphans/helper_behind_a_listener")
def gateway_of_its_own_package(stage):
    """An aggregator listens at a port that nobody told it, and has a server of its own package behind it; the agent is killed."""
    stage.part("acme/weather.py", "time.sleep(0.5)\nserve()\n")
    stage.part("acme/gateway.py", """
        time.sleep(0.5)
        inner = session("/usr/bin/python3", "-SB", "-m", "acme.weather", cwd=BIN)
        in_background(answer_calls, listen("tcp"))
        serve()
    """)
    agent = stage.rests("claude", 'session("/usr/bin/python3", "-SB", "-m", "acme.gateway", cwd=BIN)')
    return stage.killed(agent, in_use=["gateway.py", "weather.py"])

@scene("in use", twin="orphans/silent_listener")
def unaccepted(stage):
    """A client is connected, but the server, busy for now, has not accepted it yet; the agent is killed."""
    stage.part("mcp-server-web", """
        listener = listen("tcp")
        def later(*_):
            in_background(answer_calls, listener)
        signal.signal(signal.SIGUSR1, later)
        serve()
    """)
    agent = stage.agent("mcp-server-web")
    person = stage.run(stage.part("person", """
        tell("beats/person", "0")
        connection = dial("tcp", "mcp-server-web")
        connection.settimeout(None)
        here()
        use("person", lambda: ask_over(connection))
    """))
    stage.who("person")
    server = stage.who("mcp-server-web")
    stage.when_called("person", server)
    return stage.killed(agent, in_use=[server, person])

@scene("in use", twin="orphans/silent_listener")
def unix_short_calls(stage):
    """A client calls again and again over a unix socket, which leaves no TIME_WAIT; the agent is killed."""
    stage.listens("mcp-broker", "unix")
    agent = stage.agent("mcp-broker")
    stage.uses("person", "use('person', lambda: call('unix', 'mcp-broker'))\n")
    return stage.killed(agent, in_use=["mcp-broker"])

@scene("in use", name="child_for_each_call", about="A server forks a child for each call, which ends with it and so closes it; nobody called in the last minute; the agent is killed.", twin="orphans/silent_listener", closes="server")
@scene("in use", name="child_for_each_call_closed_by_the_client", about="The same, and the client closes first.", twin="orphans/silent_listener", closes="client")
def child_for_each_call(stage, closes):
    wait = "" if closes == "server" else "call.recv(100)"
    stage.part("mcp-server-web", f"""
        listener = listen("tcp")
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        def attend():
            while True:
                call = listener.accept()[0]
                if os.fork() == 0:
                    call.recv(100)
                    call.sendall(b"pong")
                    {wait}
                    os._exit(0)
                call.close()
        in_background(attend)
        serve()
    """)
    stage.part("claude", 'start("mcp-server-web")\nhere()\nrest()\n')
    stage.part("person", f"""
        ask = lambda: call("tcp", "mcp-server-web", "{closes}")
        ask()
        on_call("person", ask)
    """)
    # A network in which no TIME_WAIT is left, as a minute later.
    desk = stage.run(stage.part("desk", """
        own_network()
        with open("/proc/sys/net/ipv4/tcp_max_tw_buckets", "w") as most:
            most.write("0")
        start("claude", wire=None)
        person = start("person", wire=None)
        here("person", person.pid)
        rest()
    """))
    agent = stage.who("claude")
    stage.when_called("person", stage.who("person"))
    return stage.killed(agent, in_use=[desk, "mcp-server-web"])
