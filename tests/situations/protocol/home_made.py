"""A server that no rule knows, of a home-made host, stays when the host is killed."""

TRUTH = "orphan"
TWIN = "protocol/home_made_host_lives"


def build(stage):
    stage.server("server.py", "timer")
    host = stage.run(stage.part("chat_host.py", "use('host', session('server.py').ask)\n"))
    stage.was_used("host")
    host.kill()
    return stage.truth(orphans=[stage.who("server.py")])
