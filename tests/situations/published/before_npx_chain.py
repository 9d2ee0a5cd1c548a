"""npm exec > sh > server-everything with its ticker on; the host was killed before the daemon came"""
from npx_chain import build

TRUTH = "orphan"
WHEN = "before"
NEEDS = ["npm", "python2"]
TWIN = "published/before_wrapper_killed"
