from textwrap import dedent
from situation import scene


def site(stage):
    """A web server."""
    stage.part("web-server", "here()\nanswer_calls(listen('tcp'))\n")


def site_that_ends_with(stage, bus):
    """A leaking server starts a web server with a log, which ends with the connection that it makes so, as `bus`."""
    stage.part("web-server", dedent(bus) + dedent("""
        in_background(answer_calls, listen("tcp"))
        here()
        while bus.recv(1000):
            pass
        os._exit(0)
    """))
    stage.part("mcp-server-shell", """
        log = open(f"{DIR}/web.log", "a")
        start("web-server", wire=None, stdout=log, stderr=log, start_new_session=True)
        present("web-server")
        serve()
    """)


def visited(stage, agent, **ends):
    """The agent is killed; a person visits the site when its server has been judged."""
    stage.when_over("person", "on_call('person', lambda: call('tcp', 'web-server'))\n")
    return stage.killed(agent, in_use=["web-server"], **ends)

@scene("in use", twin="orphans/driver_that_is_read")
def service_that_was_told_its_port(stage):
    """A leaking server started a database, told it a port, reads what it prints and stays connected; the agent is killed, somebody else calls it later."""
    stage.part("database", "in_background(answer_calls, listen('tcp'))\nhere()\nrest_in_a_thread()\n")
    stage.part("mcp-server-memory", """
        child = subprocess.Popen([f"{BIN}/database", "serve", "--port", "0"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        present("database")
        connection = dial("tcp", "database")
        ask_over(connection)
        serve()
    """)
    agent = stage.agent("mcp-server-memory")
    stage.when_over("other", "on_call('other', lambda: call('tcp', 'database'))\n")
    return stage.killed(agent, in_use=["database"], may_end=["mcp-server-memory"])

@scene(
    "mixed", name="ended_by_its_server_that_takes_signals", twin="orphans/driver",
    hears="signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM]); in_background(lambda: end(signal.sigwait([signal.SIGTERM])))",
    about="The same, and the server waits for SIGTERM itself (sigwait(3)).",
)
@scene(
    "mixed", name="ended_when_a_worker_of_its_server_has", twin="orphans/driver",
    hears="signal.signal(signal.SIGTERM, end); worker = os.fork() or rest(); in_background(lambda: (os.waitpid(worker, 0), end()))",
    about="The same, and the server has a forked worker, whose end it waits for.",
)
@scene("mixed", twin="orphans/driver")
def ended_by_its_server(stage, hears="signal.signal(signal.SIGTERM, end)"):
    """A leaking server started a web server with a log, and ends it when it gets SIGTERM; the agent is killed, a person visits the site later."""
    site(stage)
    stage.part("mcp-server-shell", f"""
        log = open(f"{{DIR}}/web.log", "a")
        web = start("web-server", wire=None, stdout=log, stderr=log)
        end = lambda *_: (web.terminate(), os._exit(0))
        {hears}
        present("web-server")
        serve()
    """)
    agent = stage.agent("mcp-server-shell")
    return visited(stage, agent, orphans=["mcp-server-shell"])

@scene("mixed", twin="orphans/driver")
def ended_by_a_helper(stage):
    """A leaking server started a helper on pipes, which started a web server as a daemon and ends it at the end of its input; the agent is killed, a person visits the site later."""
    site(stage)
    stage.part("runner", """
        log = open(f"{DIR}/web.log", "a")
        web = start("web-server", wire=None, stdout=log, stderr=log, start_new_session=True)
        present("web-server")
        here()
        while os.read(0, 65536):
            pass
        web.terminate()
    """)
    stage.part("mcp-server-shell", """
        helper = subprocess.Popen([f"{BIN}/runner"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        present("runner")
        serve()
    """)
    return visited(stage, stage.agent("mcp-server-shell"), orphans=["mcp-server-shell", "runner"])

@scene("mixed", twin="orphans/joined_siblings")
def ended_by_its_sibling(stage):
    """A leaking server started a web server and stays connected to another one of its agent, at whose end it ends the site; the agent is killed, a person visits the site later."""
    site(stage)
    stage.listens("mcp-server-hub", "tcp")
    stage.part("mcp-server-shell", """
        log = open(f"{DIR}/web.log", "a")
        web = start("web-server", wire=None, stdout=log, stderr=log, start_new_session=True)
        present("web-server")
        hub = dial("tcp", "mcp-server-hub")
        ask_over(hub)
        in_background(lambda: (hub.recv(1), web.terminate(), os._exit(0)))
        serve()
    """)
    agent = stage.rests("claude", "hub, shell = start('mcp-server-hub'), start('mcp-server-shell')")
    return visited(stage, agent, orphans=["mcp-server-hub", "mcp-server-shell"])

@scene("in use", twin="orphans/driver")
def ended_by_a_script(stage):
    """A script started a tunnel and a leaking server, and ends what it started by a trap; the agent is killed, a person goes through the tunnel later."""
    stage.part("tunnel", "here()\nanswer_calls(listen('tcp'))\n")
    stage.server()
    stage.put("run-server", """
        #!/bin/bash
        trap 'kill $(jobs -p)' EXIT
        cd "$ORPHAND_SITUATION_DIR"
        bin/tunnel > tunnel.log 2>&1 &
        bin/mcp-server-fake
        :
    """)
    agent = stage.rests("claude", "start('run-server')\npresent('tunnel')\npresent('mcp-server-fake')")
    stage.when_over("person", "on_call('person', lambda: call('tcp', 'tunnel'))\n")
    return stage.killed(agent, in_use=["tunnel"], may_end=["mcp-server-fake", *stage.find("run-server")])

def below_xvfb_run(stage, server):
    """An agent that starts a server below a script as Debian's xvfb-run is, whose display takes calls, and that ends it at its end."""
    stage.part("Xvfb", "in_background(answer_calls, listen('unix'))\nhere()\nrest()\n")
    stage.put("xvfb-run", """
        #!/bin/sh
        trap 'kill $XVFBPID' EXIT
        cd "$ORPHAND_SITUATION_DIR"
        (trap '' USR1; exec bin/Xvfb >> display.log 2>&1) &
        XVFBPID=$!
        until [ -e here/Xvfb ]; do sleep 0.1; done
        "$@"
        exit $?
    """)
    return stage.rests("claude", f"""
        start('xvfb-run', f'{{BIN}}/{server}')
        present('Xvfb')
        present('{server}')
    """)

@scene("orphan", name="orphans/below_xvfb_run", twin="let_go/ended_with_the_display_of_its_launcher")
def below_a_display(stage):
    """A server below xvfb-run has called its display, as a browser of it did, and leaks; the agent is killed."""
    stage.part("mcp-server-shell", """
        display = dial("unix", "Xvfb")
        ask_over(display)
        dial("unix", "Xvfb").close()
        serve()
    """)
    agent = below_xvfb_run(stage, "mcp-server-shell")
    return stage.killed(agent, orphans=["mcp-server-shell"], may_end=["Xvfb", *stage.find("xvfb-run")])

@scene("in use", twin="orphans/below_xvfb_run")
def ended_with_the_display_of_its_launcher(stage):
    """A server below xvfb-run opened a window that lives while its display does; the agent is killed, a person visits the window's port later."""
    site_that_ends_with(stage, """
        bus = dial("unix", "Xvfb")
        bus.settimeout(None)
    """)
    return visited(stage, below_xvfb_run(stage, "mcp-server-shell"), may_end=["mcp-server-shell", *stage.find("xvfb-run")])

@scene("in use", name="clients/at_the_display_of_its_launcher", twin="orphans/below_xvfb_run")
def at_a_display(stage):
    """A server below xvfb-run leaks, and a person looks at its display from outside (x11vnc); the agent is killed."""
    agent = below_xvfb_run(stage, "mcp-server-fake")
    stage.client("unix", "Xvfb")
    return stage.killed(agent, in_use=["Xvfb"], may_end=["mcp-server-fake", *stage.find("xvfb-run")])

@scene("orphan", name="orphans/below_dbus_run_session", twin="let_go/ended_with_the_bus_of_its_launcher")
def below_a_bus(stage):
    """A server below dbus-run-session has called the bus of that, and leaks; the agent is killed."""
    stage.part("fake-mcp-server", r"""
        import re
        kind, path = re.match("unix:(path|abstract)=([^,]*)", os.environ["DBUS_SESSION_BUS_ADDRESS"]).groups()
        bus = socket.socket(socket.AF_UNIX)
        bus.connect("\0" * (kind == "abstract") + path)
        serve()
    """)
    agent = stage.rests("claude", "session('/usr/bin/dbus-run-session', '--', f'{BIN}/fake-mcp-server')")
    around = stage.find("dbus-daemon") + stage.find("dbus-run-session")
    return stage.killed(agent, orphans=["fake-mcp-server"], may_end=around)

@scene("in use", twin="orphans/driver")
def ended_with_the_bus_of_its_launcher(stage):
    """A server below dbus-run-session started a site that ends when its bus does, as D-Bus programs do; the agent is killed, a person visits the site later."""
    site_that_ends_with(stage, r"""
        import re
        kind, path = re.match("unix:(path|abstract)=([^,]*)", os.environ["DBUS_SESSION_BUS_ADDRESS"]).groups()
        bus = socket.socket(socket.AF_UNIX)
        bus.connect("\0" * (kind == "abstract") + path)
        bus.sendall(b"\0AUTH EXTERNAL %s\r\nBEGIN\r\n" % str(os.getuid()).encode().hex().encode())
        # Hello: the bus ends a connection without it after four minutes.
        fields = b""
        for code, kind, value in (1, b"o", b"/org/freedesktop/DBus"), (3, b"s", b"Hello"), (6, b"s", b"org.freedesktop.DBus"):
            fields += bytes(-len(fields) % 8) + struct.pack("<BBcxI", code, 1, kind, len(value)) + value + bytes(1)
        bus.sendall(struct.pack("<cBBBIII", b"l", 1, 0, 1, 0, 1, len(fields)) + fields + bytes(-len(fields) % 8))
    """)
    agent = stage.rests("claude", "start('/usr/bin/dbus-run-session', '--', f'{BIN}/mcp-server-shell')\npresent('mcp-server-shell')")
    return visited(stage, agent, may_end=["mcp-server-shell"])

@scene("in use", twin="orphans/driver")
def ended_by_a_program_around_it(stage):
    """A program started a site with a log and a leaking server, and ends the site when the server has ended; the agent is killed, a person visits the site later."""
    site(stage)
    stage.server()
    stage.part("start-tools", """
        log = open(f"{DIR}/web.log", "a")
        web = start("web-server", wire=None, stdout=log, stderr=log)
        try:
            subprocess.call([f"{BIN}/mcp-server-fake"])
        finally:
            web.terminate()
    """)
    agent = stage.rests("claude", "start('start-tools')\npresent('web-server')\npresent('mcp-server-fake')")
    return visited(stage, agent, may_end=["mcp-server-fake", *stage.find("start-tools")])

@scene("mixed", twin="orphans/driver")
def ended_by_its_init(stage):
    """An init ends the session of its leaking server when that has ended, as dumb-init does; the server started a site, the agent is killed, a person visits the site later."""
    site(stage)
    stage.part("mcp-server-shell", """
        log = open(f"{DIR}/web.log", "a")
        start("web-server", wire=None, stdout=log, stderr=log)
        present("web-server")
        serve()
    """)
    stage.part("dumb-init", """
        server = subprocess.Popen([f"{BIN}/mcp-server-shell"], start_new_session=True)
        server.wait()
        os.killpg(server.pid, signal.SIGTERM)
    """)
    agent = stage.rests("claude", "start('dumb-init')\npresent('web-server')\npresent('mcp-server-shell')")
    return visited(stage, agent, orphans=["mcp-server-shell"], may_end=stage.find("dumb-init"))

@scene(
    "in use", name="of_the_server_ended_by_the_next_command", twin="orphans/driver", up=":", begins="subprocess.run([f'{BIN}/up'], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)",
    about="The same, and the server itself started the site.",
)
@scene(
    "in use", name="ended_by_the_next_command_if_all_is_well", twin="orphans/driver", behind="&&",
    about="The same with `&&` between the commands.",
)
@scene(
    "in use", name="ended_by_the_next_command_of_a_strict_shell", twin="orphans/driver", option="-ce",
    about="The same with `sh -ce`.",
)
@scene("in use", twin="orphans/driver")
def ended_by_the_next_command(stage, up="{BIN}/up", begins="pass", option="-c", behind=";"):
    """Below a shell with three commands: a site is started, a leaking server runs, the site is ended; the agent is killed, a person visits the site later."""
    site(stage)
    stage.part("up", "start('web-server', wire=None, start_new_session=True)\npresent('web-server')\n")
    stage.part("down", "os.kill(present('web-server'), signal.SIGTERM)\n")
    stage.part("mcp-server-fake", f"{begins}\npresent('web-server')\nserve()\n")
    agent = stage.rests("claude", f"""
        start("/bin/sh", "{option}", f"{up} {behind} {{BIN}}/mcp-server-fake {behind} {{BIN}}/down")
        present("mcp-server-fake")
    """)
    return visited(stage, agent, may_end=["mcp-server-fake"])

@scene("in use", twin="orphans/tied_browser")
def shared_browser(stage):
    """A leaking server started a browser at a port that a person chose and stays connected; the agent is killed, another session uses the browser later."""
    stage.part("chrome", "in_background(answer_calls, listen('tcp'))\nhere()\nrest_in_a_thread()\n")
    stage.part("mcp-server-browser", """
        child = subprocess.Popen([f"{BIN}/chrome", "--remote-debugging-port=9222"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        present("chrome")
        connection = dial("tcp", "chrome")
        ask_over(connection)
        serve()
    """)
    agent = stage.agent("mcp-server-browser")
    stage.when_over("other", "on_call('other', lambda: call('tcp', 'chrome'))\n")
    return stage.killed(agent, in_use=["chrome"], may_end=["mcp-server-browser"])

@scene("in use", twin="orphans/pid_namespace")
def entered_from_outside(stage):
    """The server is the first process of a PID namespace; a person has started a site there from outside (nsenter), which it adopted; the agent is killed, the site is visited later."""
    site(stage)
    stage.server()
    agent = stage.rests("claude", """
        server = start("/usr/bin/unshare", "--pid", "--fork", BIN + "/mcp-server-fake")
        with open(f"/proc/{server.pid}/task/{server.pid}/children") as f:
            tell("first", f.read().split()[0])
    """)
    stage.rests("visitor", """
        first = open(f"{DIR}/first").read()
        line = f"{BIN}/web-server > /dev/null 2>&1 < /dev/null &"
        subprocess.run(["/usr/bin/nsenter", "--pid", "--target", first, "/bin/sh", "-c", line], check=True)
        present("web-server")
    """)
    return visited(stage, agent, may_end=["mcp-server-fake"])
