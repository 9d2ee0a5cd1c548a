import os
from situation import scene

@scene("in use", twin="orphans/tied_browser")
def browser(stage):
    """A server opened the person's browser (a session of its own, /dev/null) to log in; the session ends cleanly."""
    stage.part("chromium", """
        here()
        if ALIAS == "chromium":
            for kind in ("gpu", "renderer"):
                start("chromium", "--as", kind, wire=None)
        use(ALIAS, lambda: open(f"{DIR}/profile", "a").write("page\\n"))
    """)
    stage.part("mcp-remote", """
        start("chromium", wire=None, stderr=subprocess.DEVNULL, start_new_session=True)
        present("renderer")
        serve("exit")
    """)
    agent = stage.closes("mcp-remote", wire="socket")
    for one in ("chromium", "gpu", "renderer"):
        stage.beats(one)
    return stage.ended(agent, in_use=[one for one in ("chromium", "gpu", "renderer")])

@scene("mixed", twin="orphans/tied_browser")
@scene(
    "mixed", name="browser_in_its_session", twin="orphans/driven_browser", own_session=False,
    about="A leaking server opened a person's browser by `xdg-open` in its own session, with /dev/null; the agent is killed.",
)
def browser_on_its_wires(stage, own_session=True):
    """A leaking server opened a person's browser by `xdg-open`, which hands its wires on, as webbrowser.open() does; the agent is killed."""
    stage.put("xdg-open", f"#!/bin/sh\n{stage.dir}/bin/firefox\n")
    stage.part("firefox", """
        if ALIAS == "firefox":
            start("firefox", "--as", "page", wire=None, stdin=0, stdout=1)
        use(ALIAS, lambda: open(f"{DIR}/profile", "a").write("page\\n"))
    """)
    how = "stdin=0, stdout=1, start_new_session=True" if own_session else "stderr=subprocess.DEVNULL"
    stage.part("mcp-server-login", f"""
        start("xdg-open", wire=None, {how})
        serve()
    """)
    agent = stage.agent("mcp-server-login")
    for one in ("firefox", "page"):
        stage.beats(one)
    agent.kill()
    return stage.truth(in_use=stage.find("firefox", 2), orphans=["mcp-server-login"])

@scene("mixed", twin="orphans/helper_below_a_server")
def document(stage):
    """A leaking server opened a document for a person by `xdg-open`, on its wires and in its session; the agent is killed."""
    stage.put("xdg-open", f"#!/bin/sh\n{stage.dir}/bin/office\n")
    stage.part("office", "here()\nuse('office', lambda: open(f'{DIR}/document', 'a').write('word\\n'))\n")
    stage.part("mcp-server-office", """
        start("xdg-open", wire=None, stdin=0, stdout=1)
        serve()
    """)
    agent = stage.agent("mcp-server-office")
    office = stage.who("office")
    stage.beats("office")
    return stage.killed(agent, in_use=[office], orphans=["mcp-server-office"])

def display(stage, at=".X11-unix/X7"):
    """A display, of X11 or of Wayland (which has a lock), on which there is room for a window."""
    stage.part("Xorg", f"""
        at = f"{{DIR}}/{at}"
        os.makedirs(os.path.dirname(at), exist_ok=True)
        "X11" in at or open(at + ".lock", "w").close()
        display = socket.socket(socket.AF_UNIX)
        display.bind(at)
        display.listen()
        here()
        windows = [display.accept()]
        rest()
    """)
    stage.run(f"{stage.dir}/bin/Xorg")
    stage.who("Xorg")

@scene("mixed", twin="orphans/helper_below_a_server")
def program_with_a_window(stage):
    """A leaking server opened a picture for a person in a program of its own session, which has a window; the agent is killed."""
    display(stage)
    stage.part("viewer", """
        window = socket.socket(socket.AF_UNIX)
        window.connect(f"{DIR}/.X11-unix/X7")
        use("viewer", lambda: open(f"{DIR}/picture", "a").write("line\\n"))
    """)
    stage.part("mcp-server-picture", 'start("viewer", wire=None)\nserve()\n')
    agent = stage.agent("mcp-server-picture")
    stage.beats("viewer")
    return stage.killed(agent, in_use=stage.find("viewer"), orphans=["mcp-server-picture"])

@scene("mixed", twin="orphans/helper_below_a_server")
def program_with_a_window_and_helpers(stage):
    """A leaking server opened a program with a window on its own wires, which draws by a process of its own; the agent is killed."""
    display(stage)
    stage.part("renderer", "here()\nuse('renderer', lambda: open(f'{DIR}/picture', 'a').write('line\\n'))\n")
    stage.part("viewer", """
        window = socket.socket(socket.AF_UNIX)
        window.connect(f"{DIR}/.X11-unix/X7")
        subprocess.Popen([f"{BIN}/renderer"])
        here()
        rest()
    """)
    stage.part("mcp-server-picture", 'subprocess.Popen([f"{BIN}/viewer"])\nserve()\n')
    agent = stage.agent("mcp-server-picture")
    stage.beats("renderer")
    return stage.killed(agent, in_use=["viewer", "renderer"], orphans=["mcp-server-picture"])

@scene("in use", twin="orphans/waits_for_its_tool")
@scene(
    "in use", name="editor_on_wayland", twin="orphans/waits_for_its_tool", at="gamescope-0",
    about="The editor's window is on a display of Wayland whose name says nothing.",
)
def editor(stage, at=".X11-unix/X7"):
    """A server opened an editor in a window for a person and reads what it prints, as one for a game engine does; the agent is killed."""
    display(stage, at)
    stage.part("godot", f"""
        window = socket.socket(socket.AF_UNIX)
        window.connect(f"{{DIR}}/{at}")
        here()
        on_call("godot", lambda: open(f"{{DIR}}/project", "a").write("line\\n"))
    """)
    stage.part("mcp-server-godot", """
        subprocess.Popen([f"{BIN}/godot"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        serve()
    """)
    agent = stage.agent("mcp-server-godot")
    editor = stage.who("godot")
    stage.when_called("godot", editor)
    return stage.killed(agent, in_use=[editor], may_end=["mcp-server-godot"])

@scene("in use", twin="orphans/waits_for_its_tool")
def dev_server(stage):
    """`nohup dev-server &` in a server's shell tool; the session ends cleanly, the server exits, a person goes on using the dev server."""
    stage.part("dev-server", "here()\nanswer_calls(listen('tcp'))\n")
    stage.part("mcp-server-shell", """
        shell(f"nohup {BIN}/dev-server > dev.log 2>&1 &")
        serve("exit")
    """)
    agent = stage.closes("mcp-server-shell", "dev-server")
    stage.uses("person", "use('person', lambda: call('tcp', 'dev-server'))\n")
    return stage.ended(agent, in_use=["dev-server"])

@scene("mixed", twin="orphans/driver")
@scene(
    "mixed", name="dev_server_that_inherits_the_input", twin="orphans/driver", stdin="0",
    about="A leaking server started a web server by `Popen(.., stdout=log)`, which hands standard input on; the agent is killed, a person visits it later.",
)
def dev_server_with_a_log(stage, stdin="None"):
    """A leaking server started a web server, with a log, as a child in its own session; the agent is killed, a person visits it later."""
    stage.part("web-server", "here()\nanswer_calls(listen('tcp'))\n")
    stage.part("mcp-server-shell", f"""
        log = open(f"{{DIR}}/web.log", "a")
        start("web-server", wire=None, stdin={stdin}, stdout=log, stderr=log)
        present("web-server")
        serve()
    """)
    agent = stage.agent("mcp-server-shell")
    stage.when_over("person", "on_call('person', lambda: call('tcp', 'web-server'))\n")
    return stage.killed(agent, in_use=["web-server"], orphans=["mcp-server-shell"])

@scene("in use", name="service_at_a_socket_that_is_read", twin="orphans/fork_server", kind="unix", about="The same with a service at a unix socket.")
@scene("in use", twin="orphans/driver_that_is_read")
def dev_server_that_is_read(stage, kind="tcp"):
    """A leaking server started a web server and reads what it prints, as tools for commands do; the agent is killed, a person visits it later."""
    stage.part("web-server", f"in_background(answer_calls, listen('{kind}'))\nhere()\nrest_in_a_thread()\n")
    stage.part("mcp-server-shell", """
        child = subprocess.Popen([f"{BIN}/web-server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        present("web-server")
        serve()
    """)
    agent = stage.agent("mcp-server-shell")
    stage.when_over("person", f"on_call('person', lambda: call('{kind}', 'web-server'))\n")
    return stage.killed(agent, in_use=["web-server"], may_end=["mcp-server-shell"])

@scene("in use", name="dies_with_its_parent_on_its_errors", twin="let_go/dev_server", output="sys.stderr", about="The same with the server's standard error for its output and errors, as servers in Go start it.")
@scene("in use", twin="let_go/dev_server")
def dies_with_its_parent(stage, output="subprocess.DEVNULL"):
    """A server started a dev server in a session of its own, which is to die with it (prctl(2), PR_SET_PDEATHSIG); a person visits it. The agent is killed."""
    stage.part("web-server", "here()\nanswer_calls(listen('tcp'), closes='server')\n")
    stage.part("mcp-server-starter", f"""
        def tied():
            os.setsid()
            assert libc.prctl(1, signal.SIGTERM) == 0
        subprocess.Popen([f"{{BIN}}/web-server"], stdin=subprocess.DEVNULL, stdout={output},
                         stderr={output}, preexec_fn=tied)
        present("web-server")
        serve()
    """)
    agent = stage.rests("claude", 'start("mcp-server-starter", stderr=subprocess.PIPE)')
    stage.uses("person", "use('person', lambda: call('tcp', 'web-server', 'server'))\n")
    return stage.killed(agent, in_use=["web-server"], may_end=["mcp-server-starter"])

@scene("in use", twin="orphans/silent_listener")
def named_like_its_server(stage):
    """A server started a service that is named like one, with pipes and in a session of its own; its session ends cleanly; a person visits the service later."""
    stage.part("mcp-server-shared", """
        listener = listen("tcp")
        here()
        answer_calls(listener)
    """)
    stage.part("mcp-server-starter", """
        start("mcp-server-shared", start_new_session=True)
        present("mcp-server-shared")
        serve("exit")
    """)
    agent = stage.closes("mcp-server-starter")
    stage.when_over("person", "on_call('person', lambda: call('tcp', 'mcp-server-shared'))\n")
    return stage.ended(agent, in_use=["mcp-server-shared"])

@scene("in use", twin="orphans/bridge")
def helper_of_its_own_package(stage):
    """A server started itself again, with pipes and in a session of its own, to write an index; its session ends cleanly; the index is written on."""
    stage.part("mcp-server-fake", """
        if ALIAS == "index":
            here()
            use("index", lambda: tell("index", str(time.time())))
        start("mcp-server-fake", "--as", "index", start_new_session=True)
        present("index")
        serve("exit")
    """)
    agent = stage.closes("mcp-server-fake")
    stage.beats("index")
    return stage.ended(agent, in_use=["index"])

@scene("in use", twin="orphans/pid_namespace")
def in_a_pid_namespace(stage):
    """The server is the first process of a PID namespace; a site that it let go in there is visited; the agent is killed."""
    stage.part("mcp-server-fake", """
        start("site", wire=None, start_new_session=True)
        present("site")
        serve()
    """)
    stage.part("site", """
        sock = listen("tcp")
        here()
        answer_calls(sock)
    """)
    agent = stage.rests("claude", """
        start("/usr/bin/unshare", "--pid", "--fork", "--mount-proc=/proc", BIN + "/mcp-server-fake")
        tell("here/claude", "")
    """)
    person = stage.uses("person", """
        use("person", lambda: call("tcp", "site"))
    """)
    agent.kill()
    site = stage.find("site")
    return stage.truth(in_use=[person, *site])

@scene(
    "in use", name="in_a_terminal", twin="orphans/idle_terminal",
    about="A leaking server opened a terminal with a shell that runs a web server; a person visits it; the agent is killed.",
    serves="here()\nanswer_calls(listen('tcp'), closes='server')\n", reads="",
)
@scene(
    "in use", name="in_a_terminal_without_hangup", twin="orphans/idle_terminal",
    about="A leaking server opened a terminal with a web server that ignores SIGHUP and tells each visit there; a person visits it; the agent is killed.",
    serves="""
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        here()
        listener = listen("tcp")
        while True:
            with listener.accept()[0] as call:
                os.write(1, b"a visit\\n")
                call.recv(100)
                call.sendall(b"pong")
    """,
    reads='in_background(lambda: [None for _ in iter(lambda: os.read(terminal, 1000), b"")])',
)
def in_a_terminal(stage, serves, reads):
    stage.part("web-server", serves)
    stage.part("mcp-server-terminal", f"""
        import pty
        pid, terminal = pty.fork()
        if pid == 0:
            os.execv("/bin/bash", ["bash", "--norc"])
        os.write(terminal, f"{{BIN}}/web-server\\n".encode())
        present("web-server")
        {reads}
        serve()
    """)
    agent = stage.agent("mcp-server-terminal")
    stage.uses("person", "use('person', lambda: call('tcp', 'web-server', 'server'))\n")
    return stage.killed(agent, in_use=["web-server"], may_end=[])

@scene("mixed", twin="orphans/driver")
def launcher_of_a_site(stage):
    """A leaking server ran `npm run dev > log`: a launcher in its session runs a web server, and ends it with itself; the agent is killed, a person visits it later."""
    stage.part("web-server", "here()\nanswer_calls(listen('tcp'))\n")
    stage.part("dev-launcher", """
        child = start("web-server", wire=None, stdout=1, stderr=2)
        signal.signal(signal.SIGTERM, lambda *_: (child.terminate(), os._exit(0)))
        here()
        child.wait()
    """)
    stage.part("mcp-server-shell", """
        log = open(f"{DIR}/web.log", "a")
        start("dev-launcher", wire=None, stdout=log, stderr=log)
        present("web-server")
        serve()
    """)
    agent = stage.agent("mcp-server-shell")
    stage.when_over("person", "on_call('person', lambda: call('tcp', 'web-server'))\n")
    return stage.killed(agent, in_use=["web-server", "dev-launcher"], orphans=["mcp-server-shell"])

@scene("in use", twin="orphans/idle_terminal")
def logs_to_a_terminal(stage):
    """A server opened a terminal; a dev server that was started there left it, and still logs to it. A person visits the dev server; the agent is killed."""
    stage.part("web-server", """
        if os.fork():
            os._exit(0)
        os.setsid()
        def log():
            while True:
                try:
                    os.write(1, b"log\\n")
                except OSError:
                    os._exit(1)
                time.sleep(0.1)
        in_background(log)
        here()
        answer_calls(listen("tcp"), closes="server")
    """)
    stage.part("mcp-server-terminal", """
        import pty
        pid, terminal = pty.fork()
        if pid == 0:
            os.execv("/bin/bash", ["bash", "--norc"])
        def show():
            while os.read(terminal, 65536):
                pass
        in_background(show)
        os.write(terminal, f"{BIN}/web-server\\n".encode())
        present("web-server")
        serve()
    """)
    agent = stage.agent("mcp-server-terminal")
    stage.uses("person", "use('person', lambda: call('tcp', 'web-server', 'server'))\n")
    return stage.killed(agent, in_use=["web-server", "mcp-server-terminal"])

@scene("in use", twin="orphans/leaves_a_job")
def web_server(stage):
    """A server started a web server in a session of its own; the session ends cleanly, the site is visited."""
    stage.part("web-server", "here()\nanswer_calls(listen('tcp'), closes='server')\n")
    stage.part("mcp-server-shell", """
        log = open(f"{DIR}/web.log", "a")
        start("web-server", wire=None, stdout=log, stderr=log, start_new_session=True)
        serve("exit")
    """)
    agent = stage.closes("mcp-server-shell", "web-server")
    stage.uses("person", "use('person', lambda: call('tcp', 'web-server', 'server'))\n")
    return stage.ended(agent, in_use=["web-server"])

@scene("in use", twin="orphans/tied_browser")
def window_over_a_channel(stage):
    """A server opened a window for a person, in a session of its own, and answers it over a pair of sockets; the agent is killed."""
    stage.part("mcp-server-fake", """
        near, far = socket.socketpair()
        free = dict(stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        subprocess.Popen([f"{BIN}/window", "--ipc", str(far.fileno())], pass_fds=[far.fileno()], **free)
        far.close()
        present("window")
        def attend():
            while near.recv(100):
                near.sendall(b"pong")
        in_background(attend)
        serve()
    """)
    stage.part("window", """
        channel = socket.socket(fileno=int(argument("--ipc")))
        here()
        use("window", lambda: ask_over(channel))
    """)
    agent = stage.agent()
    stage.beats("window")
    return stage.killed(agent, in_use=["window", "mcp-server-fake"])

@scene("mixed", twin="orphans/waits_for_its_tool")
def shell_at_a_fifo(stage):
    """A leaking server had started a shell that waits for commands by `while read .. < FIFO`; the agent is killed, a person commands the shell later."""
    os.mkfifo(f"{stage.dir}/commands")
    stage.part("mcp-server-fake", """
        loop = f"while true; do while read -r line; do echo $line > {DIR}/done; done < {DIR}/commands; done"
        start("/bin/bash", "-c", loop, wire=None)
        serve()
    """)
    agent = stage.agent()
    [shell] = stage.find("bash")
    stage.when_over("person", """
        def ask():
            with open(f"{DIR}/commands", "w") as commands:
                commands.write("play\\n")
            while not os.path.exists(f"{DIR}/done"):
                time.sleep(0.02)
        on_call("person", ask)
    """)
    stage.asleep(shell)
    return stage.killed(agent, in_use=[shell], orphans=["mcp-server-fake"])
