import os
import time
from boxes import Docker
from situation import scene


def agent(stage, docker, image):
    """An agent that works with a container: one with a name, or one of this image, which no other situation has."""
    if image:
        docker.call("tag", os.environ["ORPHAND_SITUATION_IMAGE"], image)
    box = f'box(None, "--label", called(ALIAS), image="{image}")' if image else "box(ALIAS)"
    return stage.part("claude", f"""
        server = {box}
        here()
        use(ALIAS, server.ask)
    """)

@scene("mixed", twin="containers/one_image_without_names", needs=["docker"])
@scene(
    "mixed", name="one_image_without_names", twin="containers/one_image", needs=["docker"], named=False,
    about="Two agents have a container of one image each, without names; one is killed, the other works on.",
    cost="the engine does not tell which of the two containers is whose client's",
)
def one_image(stage, named=True):
    """Two agents have a container of one image each, both with names; one is killed, the other works on."""
    docker = Docker(stage)
    claude = agent(stage, docker, None if named else "mcp/twin")
    killed = stage.run(claude, "--as", "killed")
    works = stage.run(claude, "--as", "works")
    find = docker.pair if named else docker.labelled
    pair, kept = find("killed"), find("works")
    stage.was_used("killed")
    stage.beats("works")
    return stage.killed(killed, orphans=pair, in_use=[works, *kept])

@scene(
    "mixed", name="one_image_the_first_killed", twin="containers/one_image_the_second_killed", needs=["docker"],
    which=["killed", "works"], image="mcp/first",
    about="Two agents start a container of one image each, a second apart and without names; the first is killed, the other works on.",
)
@scene(
    "mixed", name="one_image_the_second_killed", twin="containers/one_image_the_first_killed", needs=["docker"],
    which=["works", "killed"], image="mcp/second",
    about="Two agents start a container of one image each, a second apart and without names; the second is killed, the other works on.",
)
def a_second_apart(stage, which, image):
    docker = Docker(stage)
    claude = agent(stage, docker, image)
    agents, pairs = {}, {}
    for name in which:
        agents[name] = stage.run(claude, "--as", name)
        pairs[name] = docker.labelled(name)
        if name == which[0]:
            time.sleep(1)  # the time itself is what tells them apart
    stage.was_used("killed")
    stage.beats("works")
    return stage.killed(agents["killed"], orphans=pairs["killed"], in_use=[agents["works"], *pairs["works"]])
