"""The key of a session is gone; its manager closes the input of a container and waits for the result of a quiet job in it."""
from boxes import Docker
from registry import Registry

TRUTH = "in use"
TWIN = "sessions/expired"
NEEDS = ["redis", "docker"]


def build(stage):
    registry, docker = Registry("ended", "goes-on"), Docker(stage)
    agent = stage.run(stage.part("claude", """
        script = f"read -r _; while [ ! -e {DIR}/go/result ]; do sleep 0.3; done; echo '{{\\"result\\":{{}}}}'; sleep 1000"
        folder = ["-v", f"{DIR}:{DIR}"]
        goes_on = box("goes-on", *given("goes-on"))
        job = box("ended", *folder, *given("ended"), program=["/bin/sh", "-c", script], asked=False)
        os.write(job.w, b"x\\n")
        here()

        def ask():
            tell("go/result", "")
            job.take()

        tell("beats/claude", "0")
        wait_for("end")
        # The session has expired by then.
        time.sleep(7)
        os.close(job.w)
        on_call("claude", ask)
    """))
    pairs = docker.pair("ended") + docker.pair("goes-on")
    stage.when_called("claude", agent)
    registry.end("ended")
    stage.go("end")
    return stage.truth(in_use=[agent, *pairs])
