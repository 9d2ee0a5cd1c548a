"""Three servers of one killed agent call each other over short TCP connections in a ring; nobody else uses any."""
import used_in_a_ring

TRUTH = "orphan"
TWIN = "clients/used_in_a_ring"


def build(stage):
    agent, three = used_in_a_ring.servers(stage, keeps=False)
    agent.kill()
    return stage.truth(orphans=three)
