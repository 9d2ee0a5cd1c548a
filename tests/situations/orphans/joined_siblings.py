"""Three servers of one killed agent are joined in a row by pairs of sockets; nobody else uses any."""
import used_through_two_siblings

TRUTH = "orphan"
TWIN = "clients/used_through_two_siblings"


def build(stage):
    agent, three = used_through_two_siblings.servers(stage)
    agent.kill()
    return stage.truth(orphans=three)
