"""A git server commits; the hook starts a background job in a session of its own; the session ends cleanly."""
import situation

TRUTH = "in use"
TWIN = "orphans/waits_for_its_tool"


def build(stage):
    stage.part("job", "here()\nuse('job', lambda: print('step', flush=True))\n")
    stage.put("post-commit", """
        #!/bin/sh
        cd "$ORPHAND_SITUATION_DIR" && setsid bin/job > job.log 2>&1 < /dev/null &
    """)
    stage.part("git", "subprocess.run([f'{BIN}/post-commit'])\n")
    stage.part("mcp-server-git", """
        answer(os.read(0, 65536))
        subprocess.run([f"{BIN}/git", "commit"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        present("job")
        here()
        read_on()
    """)
    agent = stage.run(stage.part("claude", """
        server = start("mcp-server-git")
        present("mcp-server-git")
        server.let_go()
        server.child.wait()
    """))
    stage.beats("job")
    stage.grows("job.log")
    situation.within("the agent's end", lambda: not agent.alive())
    return stage.truth(in_use=[stage.who("job")])
