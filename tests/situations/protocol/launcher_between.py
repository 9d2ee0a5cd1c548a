"""A company's own launcher runs the server on its own streams; both stay when the host is killed."""

TRUTH = "orphan"
TWIN = "protocol/launcher_killed"


def build(stage):
    stage.server("server.py", "timer")
    stage.part("company-run", "here()\nsubprocess.run([f'{BIN}/server.py'])\n")
    host = stage.run(stage.part("chat_host.py", "use('host', session('company-run').ask)\n"))
    stage.was_used("host")
    host.kill()
    return stage.truth(orphans=[stage.who("company-run"), stage.who("server.py")])
