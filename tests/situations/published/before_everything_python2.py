#!/usr/bin/python3 -B
"""server-everything with its ticker on; its host on the Python SDK 2 was killed before the daemon came"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation
from everything_python2 import build

TRUTH = "orphan"
WHEN = "before"
NEEDS = ["npm", "python2"]
TWIN = "published/before_host_python2"


situation.main()
