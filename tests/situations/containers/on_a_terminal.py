"""A person runs a server of the same image on a terminal (`-it`), while an agent with another container is killed."""
from boxes import Docker

TRUTH = "mixed"
NEEDS = ["docker"]


def build(stage):
    docker = Docker(stage)
    agent = stage.run(stage.part("claude", """
        box("box")
        here()
        rest()
    """))
    person = stage.run(stage.part("terminal", """
        import pty
        near, far = pty.openpty()
        where = ["--network", "none", "--cgroup-parent", os.environ["ORPHAND_SITUATION_GROUP"], "--name", called("seen")]
        line = ["/usr/bin/docker", "run", "-it", "--rm", *where, os.environ["ORPHAND_SITUATION_IMAGE"], "/bin/mcp-server-box"]
        subprocess.Popen(line, stdin=far, stdout=far, stderr=far, start_new_session=True)
        terminal = Server(near, near)
        here()

        def type_in():
            os.write(near, b"x\\n")
            answer = b""
            while b"result" not in answer:
                if not select.select([near], [], [], 60.0)[0]:
                    raise TimeoutError("no answer")
                answer += os.read(near, 65536)

        use("terminal", type_in)
    """))
    stage.who("claude")
    pair, seen = docker.pair("box"), docker.pair("seen")
    stage.beats("terminal")
    agent.kill()
    return stage.truth(orphans=pair, in_use=[person, *seen])
