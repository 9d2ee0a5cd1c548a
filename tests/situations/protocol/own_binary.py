"""Neither the program of the host nor that of its server is known by any name: a company's own binaries."""
import os
import shutil
import situation

TRUTH = "orphan"
TWIN = "protocol/own_lines"


def build(stage):
    stage.server("weather.txt", "timer")
    for binary in ("deskhost", "weatherd"):
        shutil.copy(os.path.realpath(situation.PYTHON), f"{stage.dir}/bin/{binary}")
    text = stage.part("host.txt", "use('host', session(f'{BIN}/weatherd', '-ISB', f'{BIN}/weather.txt').ask)\n")
    host = stage.run(f"{stage.dir}/bin/deskhost", "-ISB", text)
    stage.was_used("host")
    host.kill()
    return stage.truth(orphans=[stage.who("weather.txt")])
