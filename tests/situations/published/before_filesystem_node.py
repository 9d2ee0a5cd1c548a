"""server-filesystem blocked in a read; its host on the Node SDK was killed before the daemon came"""
from filesystem_node import build

TRUTH = "orphan"
WHEN = "before"
NEEDS = ["npm"]
