#!/usr/bin/python3 -B
"""Play a situation: `play.py STORY NAME`. `play.py --describe STORY ..` prints what each of their situations states, a line each.

A story is a Python module. It may import what is in its own folder, what is beside this script, and stories of other folders.
"""
import glob
import importlib.util
import itertools
import json
import os
import sys

import situation


def load(path):
    """Run the story, so that its situations are known."""
    own = os.path.dirname(os.path.abspath(path))
    sys.path.insert(1, own)
    sys.path.extend(sorted(glob.glob(f"{situation.HERE}/[a-z]*/")))
    spec = importlib.util.spec_from_file_location("story", path)
    story = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(story)


if sys.argv[1] == "--describe":
    for row in itertools.chain.from_iterable(map(situation.describe, sys.argv[2:])):
        print(json.dumps(row))
else:
    story, called = sys.argv[1:3]
    load(story)
    situation.play(situation.SCENES.get(called) or situation.SCENES[called.rpartition("/")[2]], called)
