"""only npm was killed before the daemon came: the rest is pid 1's, its host goes on using it"""
from wrapper_killed import build

TRUTH = "in use"
WHEN = "before"
NEEDS = ["npm", "python2"]
TWIN = "published/before_npx_chain"
