"""the Node SDK closes the session of an npx chain: npm and sh die, the server, abandoned, does not; the host lives"""
import software

TRUTH = "mixed"
NEEDS = ["npm"]
TWIN = "published/everything_node"


def build(stage):
    how = {"cwd": software.fixture("NPM"), "programs": 3, "close": f"{stage.dir}/go/close"}
    host = software.ticking(stage, "node", *software.NPX, "@modelcontextprotocol/server-everything", **how)
    *wrapper, server = host.server
    stage.go("close")
    software.within("the wrapper is gone", lambda: not any(p.alive() for p in wrapper))
    return stage.truth(in_use=[host.process], orphans=[server], note="abandoned: its stdin is hung up, the host could still read its stdout")
