"""A dev server that the agent started in the background, on pipes; the agent ends."""
import situation

TRUTH = "in use"


def build(stage):
    stage.part("vite", """
        here()
        answer_calls(listen("tcp"))
    """)
    agent = stage.run(stage.part("claude", """
        start("vite", asked=False)
        present("vite")
        here()
    """))
    stage.who("claude")
    stage.run(stage.part("person", "use('person', lambda: call('tcp', 'vite'))\n"))
    stage.beats("person")
    situation.within("the agent's end", lambda: not agent.alive())
    return stage.truth(in_use=[stage.who("vite")])
