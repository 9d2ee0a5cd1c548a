#!/usr/bin/python3 -B
"""only npm was killed before the daemon came: the rest is pid 1's, its host goes on using it"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation
from wrapper_killed import build

TRUTH = "in use"
WHEN = "before"
NEEDS = ["npm", "python2"]
TWIN = "published/before_npx_chain"


situation.main()
