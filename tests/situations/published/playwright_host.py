"""playwright's server and its chromium below a living host"""
import software
import web

TRUTH = "in use"
NEEDS = ["npm", "python2", "chromium"]
TWIN = "published/playwright_blocked"


def build(stage):
    host = web.driving(stage, use=True)
    return stage.truth(in_use=[host.process, *web.steady(software.below(host.process))])
