#!/usr/bin/python3 -B
"""forked pool workers of a host (Python SDK 2), killed before the daemon came, hold the wire's other end"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation
from pool_workers_python2 import build

TRUTH = "orphan"
WHEN = "before"
NEEDS = ["npm", "python2"]


situation.main()
