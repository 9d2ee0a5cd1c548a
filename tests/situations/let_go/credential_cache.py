"""A server's git keeps a password in git's own cache, in the server's session; the agent is killed, a person's git asks the cache."""
import os

TRUTH = "mixed"
TWIN = "orphans/driver"


def build(stage):
    os.mkdir(f"{stage.dir}/cache", 0o700)
    stage.part("mcp-server-shell", """
        secret = "protocol=https\\nhost=example.org\\nusername=u\\npassword=p\\n\\n"
        cache = ["git", "credential-cache", "--socket", f"{DIR}/cache/socket"]
        subprocess.run([*cache, "--timeout", "900", "store"], input=secret.encode(), stdout=subprocess.DEVNULL)
        serve()
    """)
    agent = stage.agent("mcp-server-shell")

    [cache] = stage.find("credential-cache--daemon")
    stage.adopted(cache)
    stage.part("person", """
        def ask():
            cache = ["git", "credential-cache", "--socket", f"{DIR}/cache/socket", "get"]
            asked = b"protocol=https\\nhost=example.org\\n\\n"
            if b"password=p" not in subprocess.run(cache, input=asked, stdout=subprocess.PIPE).stdout:
                raise EOFError("the password is gone")
        here()
        on_call("person", ask)
    """)
    person = stage.run(f"{stage.dir}/bin/person")
    agent.kill()
    stage.when_called("person", person)
    return stage.truth(in_use=[cache], orphans=[stage.who("mcp-server-shell")])
