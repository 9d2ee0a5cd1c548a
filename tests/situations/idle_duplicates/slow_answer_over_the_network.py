"""The older one has been asked something, and waits for the answer of a service at a TCP port."""

TRUTH = "in use"
TWIN = "idle_duplicates/idle"


def build(stage):
    stage.part("mcp-server-slow", """
        def slow():
            with socket.create_connection(("127.0.0.1", int(open(f"{DIR}/port").read()))) as service:
                here("at-work")
                service.recv(1)

        pending = b""
        while data := os.read(0, 65536):
            *lines, pending = (pending + data).split(b"\\n")
            for line in lines:
                if b"slow" in line:
                    slow()
                answer(line)
    """)
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
    agent = stage.run(stage.part("tidy-gateway", """
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
    """))
    stage.beats("tidy-gateway")
    stage.when_called("older", stage.who("service"))
    return stage.truth(in_use=[agent, stage.who("older"), stage.who("newer"), stage.who("service")])
