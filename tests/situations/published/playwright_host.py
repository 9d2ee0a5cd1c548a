#!/usr/bin/python3 -B
"""playwright's server and its chromium below a living host"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation
import software
import web

TRUTH = "in use"
NEEDS = ["npm", "python2", "chromium"]
TWIN = "published/playwright_blocked"


def build(stage):
    host = web.driving(stage, use=True)
    return stage.truth(in_use=[host.process, *web.steady(software.below(host.process))])


if __name__ == "__main__":
    situation.main()
