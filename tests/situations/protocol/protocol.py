import os
import shutil
import situation
from situation import scene

SERVER = """
setTimeout(() => require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
    const { id } = JSON.parse(line)
    if (id !== undefined) process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, result: {} }) + "\\n")
}), 500)
process.stdout.on("error", () => {})
setInterval(() => {}, 200) // goes on after the end of input
"""

@scene("in use", twin="protocol/home_made")
def acp_agent(stage):
    """An agent that an editor talks to by the Agent Client Protocol outlives it: no server of ours."""
    stage.part("coder", "here()\nos.read(0, 65536)\nleak_on('timer')\n")
    host = stage.rests("editor_host.py", """
        about = {"protocolVersion": 1, "clientCapabilities": {"fs": {"readTextFile": True}}}
        os.write(start("coder", asked=False).w, json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": about}).encode() + b"\\n")
        present("coder")
    """)
    return stage.killed(host, in_use=["coder"])

MOVED = """
wire = os.dup(0)
os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
time.sleep(0.5)
here()
while data := os.read(wire, 65536):
    answer(data)
leak_on("timer")
"""

@scene("orphan", twin="protocol/job_of_a_busy_shell")
@scene(
    "orphan", name="below_a_busy_shell_moved", twin="protocol/set_up_without_its_input", moved=True,
    about="The same, and the server moves its standard input to another descriptor before it reads it.",
)
def below_a_busy_shell(stage, moved=False):
    """A shell runs others on its wires before the server, as a start-up file does; the agent is killed, and the server stays."""
    stage.part("server.py", MOVED if moved else "time.sleep(0.5)\nserve()\n")
    stage.part("claude", """
        line = f"mkdir -p {DIR}/cache; sleep 0.1; rm -rf {DIR}/cache; sleep 0.1; {BIN}/server.py; true"
        use("agent", session("/bin/bash", "-c", line, wire="socket").ask)
    """)
    agent = stage.run(f"{stage.dir}/bin/claude")
    stage.was_used("agent")
    return stage.killed(agent, orphans=["server.py"])

@scene("orphan", twin="protocol/behind_another_bridge", program="supergateway")
@scene(
    "in use", name="behind_another_bridge", twin="protocol/behind_a_bridge", program="line-bridge",
    about="The same, but no rule knows the bridge, and the first message is none of the protocol: no server of ours",
)
def behind_a_bridge(stage, program):
    """A bridge starts a server that no rule knows, which reads at once; its first client comes later; the bridge is killed."""
    stage.server("server.py")
    stage.part(program, """
        server = start("/bin/sh", "-c", argument("--stdio"), asked=False)
        present("server.py")
        time.sleep(1)
        use("bridge", server.ask)
    """)
    bridge = stage.run(f"{stage.dir}/bin/{program}", "--stdio", f"{stage.dir}/bin/server.py --leak; true")
    stage.was_used("bridge")
    return stage.killed(bridge, **{"orphans" if program == "supergateway" else "in_use": ["server.py"]})

RELOADER = """
    child = subprocess.Popen([sys.argv[1]], stdin=subprocess.PIPE)  # on our own standard output
    here()
    while data := os.read(0, 65536):
        os.write(child.stdin.fileno(), data)
    rest()
"""

@scene("orphan", twin="protocol/reloaded")
@scene(
    "orphan", name="behind_a_reloader_by_name", twin="protocol/reloaded", server="mcp-server-home",
    about="The same, and the server has a name that a rule knows.",
)
def behind_a_reloader(stage, server="server.py"):
    """An agent runs its server by a reloader (`nodemon -q server.py`), which feeds it by a pipe of its own; the agent is killed."""
    stage.server(server, "blocked", starts=3.0)
    stage.part("nodemon", RELOADER)
    stage.part("claude", f'use("agent", session("nodemon", f"{{BIN}}/{server}").ask)')
    agent = stage.run(f"{stage.dir}/bin/claude")
    stage.was_used("agent")
    return stage.killed(agent, orphans=["nodemon", server])

@scene("in use", twin="protocol/behind_a_reloader", restart=True)
@scene(
    "in use", name="reloads_by_name_and_restarts", twin="protocol/behind_a_reloader_by_name", server="mcp-server-home", restart=True,
    about="The same, and the server has a name that a rule knows.",
)
def reloads_and_restarts(stage, server="server.py"):
    """An agent uses its server behind a reloader, which starts it anew, while orphand is restarted again and again."""
    stage.server(server, "blocked", starts=3.0)
    stage.part("nodemon", """
        child, told = None, 0
        here()
        while data := os.read(0, 65536):
            if told in (0, 4):
                if child: child.kill(), child.wait()
                child = subprocess.Popen([sys.argv[1]], stdin=subprocess.PIPE)
            told += 1
            os.write(child.stdin.fileno(), data)
    """)
    agent = stage.run(stage.part("claude", f'use("agent", session("nodemon", f"{{BIN}}/{server}").ask)'))
    stage.beats("agent", 8)
    return stage.truth(in_use=[agent, "nodemon", server])

@scene("in use", twin="protocol/behind_a_reloader_by_name")
def reloaded(stage):
    """A reloader on wires of an agent, which told it nothing, keeps a bot with the name of a server; the agent is killed."""
    stage.part("mcp-server-bot", "here()\nuse('bot', lambda: open(f'{DIR}/bot.log', 'a').write('message'))\n")
    stage.part("nodemon", RELOADER)
    agent = stage.rests("claude", 'start("nodemon", f"{BIN}/mcp-server-bot", asked=False)\npresent("mcp-server-bot")')
    stage.beats("bot")
    return stage.killed(agent, in_use=["nodemon", "mcp-server-bot"])

@scene("in use", twin="protocol/home_made")
def framed(stage):
    """A language server and a debug adapter outlive the program that started them: no servers of ours."""
    for program in ("tlsd", "dapd"):
        stage.part(program, "here()\nos.read(0, 65536)\nleak_on('timer')\n")
    host = stage.rests("editor_host.py", """
        def frame(program, message):
            body = json.dumps(message).encode()
            os.write(start(program, asked=False).w, b"Content-Length: %d\\r\\n\\r\\n%s" % (len(body), body))
            present(program)
        frame("tlsd", {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"capabilities": {}, "clientInfo": {"name": "editor"}}})
        frame("dapd", {"seq": 1, "type": "request", "command": "initialize", "arguments": {"adapterID": "x"}})
    """)
    return stage.killed(host, in_use=["tlsd", "dapd"])

@scene("in use", twin="protocol/launcher_between")
def site_before_the_first_message(stage):
    """A home-made server starts a site on its own streams before its client writes; the agent is killed, a person visits the site."""
    stage.part("site", "sock = listen('tcp')\nhere()\nanswer_calls(sock)\n")
    stage.part("server.py", "subprocess.Popen([f'{BIN}/site'])\nserve()\n")
    agent = stage.rests("claude", """
        server = start("server.py", asked=False)
        present("site")
        time.sleep(1)
        server.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}})
    """)
    stage.uses("person", "use('person', lambda: call('tcp', 'site'))\n")
    return stage.killed(agent, in_use=["site"], may_end=["server.py"])

@scene("in use", twin="protocol/home_made")
def handed_on(stage):
    """The host handed the wires of a server that no rule knows to another program before it was killed."""
    stage.server("server.py", starts=0.5)
    stage.part("successor", "use('successor', handed().ask)\n")
    host = stage.rests("chat_host.py", 'hand_on(session("server.py"), "successor")')
    host.kill()
    stage.beats("successor")
    return stage.truth(in_use=["successor", "server.py"])

@scene("orphan", twin="protocol/home_made_host_lives")
def home_made(stage):
    """A server that no rule knows, of a home-made host, stays when the host is killed."""
    stage.server("server.py", starts=0.5)
    host = stage.run(stage.part("chat_host.py", "use('host', session('server.py').ask)\n"))
    stage.was_used("host")
    return stage.killed(host, orphans=["server.py"])

@scene("in use", twin="protocol/home_made")
def home_made_host_lives(stage):
    """A home-made host and its server, which no rule knows, are idle."""
    stage.server("server.py", starts=0.5)
    host = stage.run(stage.part("chat_host.py", """
        server = session("server.py")
        here()
        on_call("host", server.ask)
    """))
    stage.when_called("host", stage.who("chat_host.py"))
    return stage.truth(in_use=[host, "server.py"])

@scene("in use", twin="protocol/below_a_busy_shell")
@scene(
    "in use", name="set_up_without_its_input", twin="protocol/below_a_busy_shell_moved", first="os.dup2(os.open('/dev/null', os.O_RDONLY), 0)\n",
    about="The same, and what sets up has put /dev/null in the place of its standard input (`ssh -n`).",
)
@scene(
    "in use", name="set_up_whose_shell_was_ended", twin="protocol/below_a_busy_shell", then="server.child.terminate()\nserver.child.wait()\n",
    about="The same, and the agent had given up and ended the shell, as clients do with a start that takes too long.",
)
def set_up_below_a_shell(stage, first="", then=""):
    """A shell sets up on its wires before it starts the server, for which the first message waits; the agent is killed meanwhile."""
    stage.part("set-up", f"here()\n{first}use('set-up', lambda: os.stat(DIR))\n")
    stage.server("server.py")
    agent = stage.rests("claude", f"""
server = start("/bin/bash", "-c", f"{{BIN}}/set-up && {{BIN}}/server.py", asked=False)
server._send("tools/list", None)
present("set-up")
{then}""")
    stage.beats("set-up")
    return stage.killed(agent, in_use=["set-up"])

@scene("orphan", twin="protocol/slow_launcher")
def launcher_that_serves(stage):
    """A launcher is a server itself (`pixi mcp`), and starts nothing; the agent is killed."""
    shutil.copy("/usr/bin/python3", f"{stage.dir}/bin/pixi")
    stage.server("mcp")
    stage.part("claude", 'use("agent", session("pixi", f"{BIN}/mcp").ask)')
    agent = stage.run(f"{stage.dir}/bin/claude")
    stage.was_used("agent")
    return stage.killed(agent, orphans=["mcp"])

@scene("in use", twin="protocol/launcher_that_serves")
@scene(
    "in use", name="slow_launcher_that_is_a_script", twin="protocol/launcher_that_serves", line=["/usr/bin/python3", "-ISB", "conda", "run"],
    about="The same, and the launcher is a script of Python's (`conda run`).",
)
def slow_launcher(stage, line=("pixi", "run")):
    """A launcher installs what it will start (`pixi run`), and leaves the first message to that; the agent is killed meanwhile."""
    shutil.copy("/usr/bin/python3", f"{stage.dir}/bin/pixi")
    for program in ("run", "conda"):
        stage.part(program, "here('launcher')\nuse('launcher', lambda: os.stat(DIR))\n")
    agent = stage.rests("claude", f"""
        start(*{line!r}, "server.py", cwd=BIN, asked=False)._send("tools/list", None)
        present("launcher")
    """)
    stage.beats("launcher")
    return stage.killed(agent, in_use=["launcher"])

@scene("in use", twin="protocol/below_a_busy_shell")
def job_of_a_busy_shell(stage):
    """A shell runs others on its wires; what its killed agent wrote to it is no message of the protocol."""
    stage.part("job.py", """
        here()
        while True:
            with open(f"{DIR}/saved", "a") as f:
                f.write("one more")
            time.sleep(TICK)
    """)
    stage.part("claude", """
        line = f"mkdir -p {DIR}/cache; sleep 0.1; rm -rf {DIR}/cache; {BIN}/job.py; true"
        job = start("/bin/bash", "-c", line, wire="socket", asked=False)
        os.write(job.w, b"all tables\\n")
        here()
        rest()
    """)
    agent = stage.run(f"{stage.dir}/bin/claude")
    stage.who("claude")
    stage.grows("saved")
    return stage.killed(agent, in_use=["job.py"])

@scene("orphan", twin="protocol/launcher_killed")
def launcher_between(stage):
    """A company's own launcher runs the server on its own streams; both stay when the host is killed."""
    stage.server("server.py", starts=0.5)
    stage.part("company-run", "here()\nsubprocess.run([f'{BIN}/server.py'])\n")
    host = stage.run(stage.part("chat_host.py", "use('host', session('company-run').ask)\n"))
    stage.was_used("host")
    return stage.killed(host, orphans=["company-run", "server.py"])

@scene("in use", twin="protocol/launcher_between")
def launcher_killed(stage):
    """A company's own launcher was killed; the server that it ran goes on being used."""
    stage.server("server.py", starts=0.5)
    stage.part("company-run", "here()\nsubprocess.run([f'{BIN}/server.py'])\n")
    host = stage.run(stage.part("chat_host.py", "use('host', session('company-run').ask)\n"))
    stage.beats("host")
    server = stage.who("server.py")
    stage.who("company-run").kill()
    return stage.truth(in_use=[host, server])

@scene("orphan", needs=["npm"])
def node_server(stage):
    """`node build/index.js`, on sockets and without a package's name, stays when its home-made host is killed."""
    os.makedirs(f"{stage.dir}/weather/build")
    stage.write("weather/build/index.js", SERVER)
    host = stage.run(stage.part("chat_host.py", """
        use("host", session("/usr/bin/env", "node", "build/index.js", wire="socket", cwd=f"{DIR}/weather").ask)
    """))
    stage.was_used("host")
    server = stage.find("index.js")
    return stage.killed(host, orphans=server)

@scene("orphan", twin="protocol/handed_on")
def of_an_agent(stage):
    """The agent is killed; its server, which no rule knows, stays."""
    stage.server("main.py", starts=0.5)
    agent = stage.run(stage.part("claude", "use('agent', session('/usr/bin/python3', '-ISB', f'{BIN}/main.py', wire='socket').ask)\n"))
    stage.was_used("agent")
    return stage.killed(agent, orphans=["main.py"])

@scene("orphan", twin="protocol/own_lines")
def own_binary(stage):
    """Neither the program of the host nor that of its server is known by any name: a company's own binaries."""
    stage.server("weather.txt", starts=0.5)
    for binary in ("deskhost", "weatherd"):
        shutil.copy(os.path.realpath(situation.PYTHON), f"{stage.dir}/bin/{binary}")
    text = stage.part("host.txt", "use('host', session(f'{BIN}/weatherd', '-ISB', f'{BIN}/weather.txt').ask)\n")
    host = stage.run(f"{stage.dir}/bin/deskhost", "-ISB", text)
    stage.was_used("host")
    return stage.killed(host, orphans=["weather.txt"])

@scene("in use", twin="protocol/home_made")
def own_lines(stage):
    """Workers that are told what to do by lines of JSON of their own outlive their host: no servers of ours."""
    stage.part("worker.py", "here()\nos.read(0, 65536)\nleak_on('timer')\n")
    LINES = [
        {"command": "initialize", "worker": 1, "tools": ["initialize", "jsonrpc"]},
        {"jsonrpc": "2.0", "id": 1, "method": "job/start", "params": {"text": '"method": "initialize"'}},
        ["initialize", {"jsonrpc": "2.0"}],
    ]
    host = stage.rests("queue_host.py", f"""
        for at, line in enumerate({LINES!r}):
            os.write(start("worker.py", "--as", f"worker{{at}}", asked=False).w, json.dumps(line).encode() + b"\\n")
            present(f"worker{{at}}")
    """)
    return stage.killed(host, in_use=[f"worker{at}" for at in range(len(LINES))])

@scene("in use", twin="protocol/home_made")
@scene(
    "in use", name="spoken_to_below_a_shell", twin="protocol/below_a_busy_shell", line=["/bin/sh", "-c", "{BIN}/job.py; true"],
    about="The same, and the relay runs the job by a shell, which it ends.",
)
def spoken_to_by_a_caller(stage, line=("{BIN}/job.py",)):
    """A relay runs a job for whoever calls it, and hands on what he says, a message of the protocol; the job does not read it, and the relay is killed."""
    stage.part("job.py", "here()\nuse('job', lambda: open(f'{DIR}/job.log', 'a').write('step'))\n")
    relay = stage.rests("relay", f"""
        job = start(*[word.format(BIN=BIN) for word in {line!r}], asked=False)
        job._send("tools/list", None)
        present("job.py")
        time.sleep(1)
        if {len(line)} > 1:
            job.child.kill()
            job.child.wait()
    """)
    stage.beats("job")
    return stage.killed(relay, in_use=["job.py"])

@scene("orphan", twin="protocol/spoken_to_by_a_caller")
def hangs_over_a_request(stage):
    """A home-made server has answered `initialize` and hangs; more waits to be read, and its home-made host is killed."""
    stage.part("server.py", """
        time.sleep(0.5)
        answer(os.read(0, 65536))
        here()
        rest()
    """)
    host = stage.rests("chat_host.py", """
        server = start("server.py", asked=False)
        about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "chat", "version": "1"}}
        server.ask("initialize", about)
        server._send("tools/list", None)
        present("server.py")
    """)
    return stage.killed(host, orphans=["server.py"])

@scene("orphan", twin="protocol/becomes_a_job")
@scene(
    "in use", name="becomes_a_job", twin="protocol/starts_anew", next_one="job.py",
    about="The same, and what it becomes is another program that works: no server any more.",
)
def starts_anew(stage, next_one="server.py"):
    """A server that no rule knows starts itself anew in place (`bun --watch server.ts`, os.execv); then its agent is killed."""
    stage.part("job.py", "use('job', lambda: open(f'{DIR}/job.log', 'a').write('step'))\n")
    stage.part("server.py", f"""
        if "ANEW" in os.environ:
            serve()
        time.sleep(0.5)
        answer(os.read(0, 65536))
        become("{next_one}", ANEW="1")
    """)
    agent = stage.rests("claude", """
        about = {"protocolVersion": "2025-06-18", "capabilities": {}}
        start("server.py", asked=False).ask("initialize", about)
    """)
    if next_one == "job.py":
        stage.beats("job")
        return stage.killed(agent, in_use=stage.find("job.py"))
    return stage.killed(agent, orphans=["server.py"])
