"""mcp-remote waits for somebody to sign in (OAuth); its host on the Node SDK is killed"""
import software
import web
from remote_service import Remote

TRUTH = "orphan"
NEEDS = ["npm"]
TWIN = "published/remote_browser"


def build(stage):
    remote = Remote(signs_in=False)
    how = {"env": web.no_browser(stage), "mute": True}
    host = software.Host(stage, "node", software.npm_bin("mcp-remote"), f"{remote.url}/mcp", **how)
    software.within("it waits for the sign-in", lambda: software.listens(host.server[-1]))
    host.kill()
    return stage.truth(orphans=host.server)
