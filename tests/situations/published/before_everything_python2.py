"""server-everything with its ticker on; its host on the Python SDK 2 was killed before the daemon came"""
from everything_python2 import build

TRUTH = "orphan"
WHEN = "before"
NEEDS = ["npm", "python2"]
TWIN = "published/before_host_python2"
