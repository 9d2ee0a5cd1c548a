"""mcp-remote opened a person's browser (chromium) to sign in; the session went on and ended cleanly"""
import software
import web
from remote_service import Remote

TRUTH = "in use"
NEEDS = ["npm", "python2", "chromium"]
TWIN = "published/remote_waits"


def build(stage):
    remote = Remote(signs_in=True)
    # Without a page of its own mcp-remote's last page closes itself, and with it a browser that shows nothing else.
    command = [software.npm_bin("mcp-remote"), f"{remote.url}/mcp", "--auth-success-url", f"{remote.url}/welcome"]
    host = software.Host(stage, "python2", *command, env=web.browser(stage))
    browser = web.chromium_of(stage)
    stage.named.update(browser)
    host.close()
    software.within("mcp-remote ends with its session", lambda: not host.server[0].alive())
    stage.checks.append(lambda: any(p.alive() for p in browser if p not in web.steady(browser)))
    return stage.truth(in_use=web.steady(browser))
