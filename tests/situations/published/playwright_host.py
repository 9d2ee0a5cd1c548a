#!/usr/bin/python3 -B
"""playwright's server and its chromium below a living host"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation
import software

TRUTH = "in use"
NEEDS = ["npm", "python2", "chromium"]
TWIN = "published/playwright_blocked"


def build(stage):
    host = software.driving(stage, use=True)
    return stage.truth(in_use=[host.process, *software.steady(software.below(host.process))])


situation.main()
