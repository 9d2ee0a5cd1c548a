"""playwright's server is blocked in the code that it was given, with its chromium; its host is killed"""
import os
import software
import web

TRUTH = "orphan"
NEEDS = ["npm", "python2", "chromium"]
TWIN = "published/playwright_host"


def build(stage):
    begun = f"{stage.dir}/go/begun.png"
    wait = "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)"
    host = web.driving(stage, code=f"async (page) => {{ await page.screenshot({{ path: '{begun}' }}); {wait}; }}")
    software.within("its code runs", lambda: os.path.exists(begun))
    tree = software.below(host.process)
    host.kill()
    return stage.truth(orphans=tree)
