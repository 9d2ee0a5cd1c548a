import os
import situation
from situation import scene

@scene("in use")
def at_job(stage):
    """The agent queued a job; a double-forked shell in a session of its own runs a pipeline with a server, later; the agent is dead by then."""
    agent = stage.rests("claude", """
        job = f"while [ ! -e go/due ]; do sleep 0.1; done; echo {{}} | {BIN}/mcp-server-batch | cat > results; true"
        shell(f"(setsid sh -c '{job}' < /dev/null > /dev/null 2>&1 &)")
    """)
    stage.find("sh")
    agent.kill()
    stage.go("due")
    server = stage.who("mcp-server-batch")
    stage.grows("results")
    return stage.truth(in_use=[server, *[p for p in stage.find("cat") if p.argv()[0] == "cat"]])

@scene("in use", twin="orphans/unknown_host")
def chatbot(stage):
    """`echo prompt | nohup python mcp_chatbot.py > out &`: a bot that outlives the agent, and its own server."""
    stage.part("mcp_chatbot.py", """
        os.read(0, 100)
        here()
        use("bot", start("mcp-server-fake").ask)
    """)
    agent = stage.rests("claude", 'shell(f"echo prompt | nohup {BIN}/mcp_chatbot.py > bot.out 2>&1 &")')
    stage.beats("bot")
    return stage.killed(agent, in_use=["mcp_chatbot.py", "mcp-server-fake"])

@scene("in use", twin="orphans/login_shell")
def coproc(stage):
    """A bash script talks to a server through `coproc` in the background; the agent is killed."""
    stage.put("talk.sh", """
        #!/bin/bash
        coproc SERVER { exec "$ORPHAND_SITUATION_DIR/bin/mcp-server-fake"; }
        while echo '{"id":1}' >&"${SERVER[1]}" && read -r answer <&"${SERVER[0]}"; do
            echo "$answer" >> results
            sleep 0.25
        done
    """)
    agent = stage.rests("claude", 'shell(f"nohup bash {BIN}/talk.sh > /dev/null 2>&1 &")')
    server = stage.who("mcp-server-fake")
    stage.grows("results")
    agent.kill()
    return stage.truth(in_use=[server, *stage.find("talk.sh")])

@scene("in use")
def loop(stage):
    """A nohup loop outlives the agent and starts one server after the other: each is born when the agent is dead."""
    stage.part("mcp-server-batch", """
        here(f"server{os.path.getsize(DIR + '/started')}")
        answer(os.read(0, 65536))
        use("loop", lambda: os.write(1, b"result\\n"))
    """)
    agent = stage.rests("claude", """
        open(f"{DIR}/started", "w").close()
        line = f"echo >> started; echo '{{\\"id\\":1}}' | {BIN}/mcp-server-batch >> results"
        shell(f"nohup sh -c 'while [ ! -e go/dead ]; do sleep 0.1; done; while :; do {line}; done' > /dev/null 2>&1 &")
    """)
    loop = [p for p in stage.find("sh") if "while" in p.argv()[-1]]
    agent.kill()
    stage.go("dead")
    server = stage.who("server1")
    stage.grows("results")
    return stage.truth(in_use=[server, *loop])

@scene(
    "in use", name="appended_pipe", about="`tail -f requests | mcp-server-x > results &`: input through a pipe from tail, output to a file.",
    line="tail -s 0.1 -f requests 2> /dev/null | BIN/mcp-server-fake > results 2> /dev/null &", parts=["tail"], asks="file",
)
@scene(
    "in use", name="find_exec", about="`find .. -exec sh -c 'mcp-server-x < FILE | sort' \\; &`: input is a file, the result goes through a pipe.",
    line="nohup find . -name requests -exec sh -c 'BIN/mcp-server-batch < $0 | cat > results; true' {} \\; > /dev/null 2>&1 &",
    parts=["find", "cat"],
)
@scene(
    "in use", name="here_string", about="`mcp-server-x <<< '{}' > results &`: the input is a pipe whose writer is gone, the output a file.",
    line="nohup BIN/mcp-server-batch <<< '{}' > results 2> /dev/null &",
)
@scene(
    "in use", name="make", about="`make &` in the Bash tool; a recipe pipes requests through a server; the agent is killed.",
    line="nohup make SERVER=BIN/mcp-server-batch > make.log 2>&1 &", parts=["make", "tee"],
)
@scene(
    "in use", name="process_substitution", about="`nohup bash -c 'server < <(tail -f requests) > >(sed .. > results)' &`; the agent is killed.",
    line="nohup bash -c 'BIN/mcp-server-fake < <(tail -s 0.1 -f requests) > >(sed -u s/x/y/ > results)' > /dev/null 2>&1 &",
    parts=["tail", "sed"], asks="file",
)
@scene(
    "in use", name="timeout", about="`timeout 7200 sh -c 'cat requests - | server' | tee` with a person's FIFO for input; the agent is killed.",
    line="timeout 7200 sh -c 'cat requests | BIN/mcp-server-fake; true' 2> /dev/null | tee results > /dev/null &",
    parts=["cat", "tee"], asks="fifo",
)
@scene(
    "in use", name="xargs", about="`.. | xargs -n 1 sh -c 'echo .. | mcp-server-x' > results &` works off a list; the agent is killed.",
    line="(seq 9 | xargs -n 1 sh -c 'echo $0 | BIN/mcp-server-batch | cat; true' > results) 2> /dev/null &", parts=["xargs", "cat"], session=False,
)
@scene(
    "in use", twin="orphans/login_shell", parts=["sh", "sed"],
    line="nohup sh -c 'echo {} | BIN/mcp-server-batch | sed -u s/x/y/ > results' > /dev/null 2>&1 &",
)
def pipeline(stage, line, parts=(), asks=None, session=True):
    """`nohup sh -c 'echo {} | mcp-server-x | sed .. > results' &` works off a job; the agent is killed."""
    if asks == "fifo":
        os.mkfifo(f"{stage.dir}/requests")
    else:
        stage.write("requests", '{"id":0}\n')
    stage.write("Makefile", "results:\n\techo {} | $(SERVER) | tee results > /dev/null; true\n")
    agent = stage.rests("claude", f"shell({line.replace('BIN', stage.dir + '/bin')!r}, start_new_session={session})")
    if asks:
        stage.run(stage.part("person", """
            requests = os.open(f"{DIR}/requests", os.O_WRONLY | os.O_APPEND)
            use("person", lambda: os.write(requests, b'{"id":1}\\n'))
        """))
    server = stage.who("mcp-server-fake" if asks else "mcp-server-batch")
    stage.grows("results")
    return stage.killed(agent, in_use=[server, *(p for name in parts for p in stage.find(name) if p.argv()[0] == name)])

@scene("in use", twin="orphans/reader_gone")
def pipeline_of_a_killed_shell(stage):
    """A pipeline in the background, whose shell is killed with the agent: server and reader of the results are left."""
    agent = stage.rests("claude", """
        shell(f"nohup sh -c 'echo {{}} | {BIN}/mcp-server-batch | sed -u s/x/y/ > results; true' > /dev/null 2>&1 &")
    """)
    server = stage.who("mcp-server-batch")
    stage.grows("results")
    sed = [p for p in stage.find("sed") if p.argv()[0] == "sed"]
    agent.kill()
    situation.Process(server.parent()).kill()
    return stage.truth(in_use=[server, *sed])

@scene("in use", twin="orphans/unknown_host")
def test_run(stage):
    """A test suite in the background of the Bash tool starts servers and talks to them; the agent is killed."""
    stage.part("pytest", """
        here()
        def test():
            server = start("mcp-server-fake", "--as", "short")
            server.let_go()
            server.child.kill()
            server.child.wait()
            long.ask()
        long = start("mcp-server-fake", "--as", "long")
        use("pytest", test)
    """)
    agent = stage.rests("claude", 'shell(f"nohup {BIN}/pytest -k servers > pytest.log 2>&1 &")')
    stage.beats("pytest")
    return stage.killed(agent, in_use=["pytest", "long"])

@scene("in use")
def two_fifos(stage):
    """A client and a server joined by two FIFOs, both in the background of the Bash tool; the agent is killed."""
    stage.part("client.py", "here()\nuse('client', Server(1, 0).ask)\n")
    agent = stage.rests("claude", """
        shell(f"mkfifo a b; nohup {BIN}/mcp-server-fake < a > b 2>/dev/null & nohup {BIN}/client.py > a < b 2>/dev/null &")
    """)
    stage.beats("client")
    return stage.killed(agent, in_use=["mcp-server-fake", "client.py"])

@scene("in use", twin="orphans/silent_listener")
def web_service(stage):
    """`echo y | nohup my-mcp-web --http > log &` in the Bash tool: a web service under load; the agent ends."""
    stage.part("my-mcp-web", """
        os.read(0, 100)
        here()
        answer_calls(listen("tcp"))
    """)
    agent = stage.run(stage.part("claude", """
        shell(f"echo y | nohup {BIN}/my-mcp-web --http > web.log 2>&1 &")
        present("my-mcp-web")
        here()
    """))
    stage.who("claude")
    stage.uses("person", "use('person', lambda: call('tcp', 'my-mcp-web'))\n")
    return stage.ended(agent, in_use=["my-mcp-web"])

