#!/usr/bin/python3 -B
"""npm exec > sh > server-everything with its ticker on; the host was killed before the daemon came"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation
from npx_chain import build

TRUTH = "orphan"
WHEN = "before"
NEEDS = ["npm", "python2"]
TWIN = "published/before_wrapper_killed"


situation.main()
