#!/usr/bin/python3 -B
"""Play a story: `play.py STORY`. `play.py --describe STORY ..` prints what each states, a line each.

A story is a Python module that says what it is: a docstring, `TRUTH`, `build(stage)`. It may import what is in its own folder,
what is beside this script, and stories of other folders.
"""
import glob
import importlib.util
import json
import os
import sys

import situation


def load(path):
    """The story as a module."""
    own = os.path.dirname(os.path.abspath(path))
    sys.path.insert(1, own)
    sys.path.extend(sorted(glob.glob(f"{situation.HERE}/[a-z]*/")))
    spec = importlib.util.spec_from_file_location("story", path)
    story = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(story)
    return story


if sys.argv[1] == "--describe":
    for one in sys.argv[2:]:
        print(json.dumps(situation.describe(one)))
else:
    situation.play(load(sys.argv[1]), situation.name(sys.argv[1]))
