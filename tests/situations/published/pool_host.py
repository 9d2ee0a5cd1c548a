"""a living host with forked pool workers that inherited the wire"""
import software

TRUTH = "in use"
NEEDS = ["npm", "python2"]
TWIN = "published/pool_workers_python2"


def build(stage):
    host = software.Host(stage, "python2", "node", software.everything(), pool=2, use=True)
    return stage.truth(in_use=[host.process, *host.server, *host.workers])
