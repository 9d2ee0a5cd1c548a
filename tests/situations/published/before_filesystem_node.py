#!/usr/bin/python3 -B
"""server-filesystem blocked in a read; its host on the Node SDK was killed before the daemon came"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation
from filesystem_node import build

TRUTH = "orphan"
WHEN = "before"
NEEDS = ["npm"]


situation.main()
