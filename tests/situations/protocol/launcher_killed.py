"""A company's own launcher was killed; the server that it ran goes on being used."""

TRUTH = "in use"
TWIN = "protocol/launcher_between"


def build(stage):
    stage.server("server.py", "timer")
    stage.part("company-run", "here()\nsubprocess.run([f'{BIN}/server.py'])\n")
    host = stage.run(stage.part("chat_host.py", "use('host', session('company-run').ask)\n"))
    stage.beats("host")
    server = stage.who("server.py")
    stage.who("company-run").kill()
    return stage.truth(in_use=[host, server])
