//! What a daemon under test does not see: agents and servers outside of its scope.
//!
//! Every input and every question goes by here. Programs outside that a rule would recognise are handed in under a name that
//! no rule knows, and what is said to a program there is not asked for. All else is as it is: those processes still hold
//! wires, are connected, and own what they started inside. The recording has what was handed in, so a replay needs no scope.

use super::Driver;
use crate::host::{Place, Scope};
use orphand_core::{
    model::{About, Answer, FirstMessage, Image, Input, ProcessEvent, ProcessId, SnapshotProcess},
    recognise::{Role, Rules},
};

/// The name of a program outside that would be recognised.
const OUTSIDE: &str = "outside";

impl Driver {
    /// Takes out of an input what makes an agent or a server of a process outside.
    pub(super) fn hide_outside(&self, input: &mut Input) {
        let Some(scope) = &self.scope else { return };
        let rules = self.engine.rules();
        match input {
            Input::Process { event: ProcessEvent::Exec { process, parent, image, .. } }
                if is_known(rules, image) && is_outside(scope, *process, Some(*parent)) =>
            {
                *image = unknown();
            }
            Input::Snapshot { snapshot } => {
                snapshot.processes.iter_mut().for_each(|process| hide(scope, rules, process));
            }
            Input::Answered { answer: Answer::Process { process: Some(process) }, .. } => {
                hide(scope, rules, process);
            }
            _ => {}
        }
    }

    /// The answer to a question that would make a server of a process outside, or end one.
    pub(super) fn answer_outside(&self, about: &About) -> Option<Answer> {
        let scope = self.scope.as_ref()?;
        let (is_outside, answer) = match about {
            About::FirstMessage { processes, .. } => {
                let is_outside = processes.first().is_some_and(|first| is_outside(scope, *first, None));
                (is_outside, Answer::FirstMessage { message: FirstMessage::Nothing })
            }
            About::Declared { process, .. } => {
                (is_outside(scope, *process, None), Answer::FirstMessage { message: FirstMessage::Nothing })
            }
            About::Hints { server, .. } => (is_outside(scope, *server, None), Answer::Hints { found: None }),
            About::Stop { seen, .. } => {
                let first = seen.first();
                let is_inside = first.is_some_and(|first| scope.place(first.process.pid) == Place::Inside);
                let error = Some("it is not seen to be in the scope of this daemon".to_owned());
                (!is_inside, Answer::Stopped { error, changed: false })
            }
            _ => return None,
        };
        is_outside.then_some(answer)
    }
}

/// Whether it is elsewhere. One that has ended is where its parent is; what cannot be read is not, and gets no signal either.
fn is_outside(scope: &Scope, process: ProcessId, parent: Option<ProcessId>) -> bool {
    match scope.place(process.pid) {
        Place::Inside => false,
        Place::Outside => true,
        Place::Unseen => parent.is_some_and(|parent| scope.place(parent.pid) == Place::Outside),
    }
}

fn hide(scope: &Scope, rules: &Rules, process: &mut SnapshotProcess) {
    let is_known = is_known(rules, &process.image);
    if (is_known || process.unit.is_some()) && is_outside(scope, process.id, process.parent) {
        // A rule may name a unit, too.
        process.unit = None;
        if is_known {
            process.image = unknown();
        }
    }
}

fn is_known(rules: &Rules, image: &Image) -> bool {
    matches!(rules.role_but_for_exemption(image), Role::Agent { .. } | Role::Server { .. })
}

fn unknown() -> Image {
    Image { exe: OUTSIDE.to_owned(), argv: vec![OUTSIDE.to_owned()], ..Image::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use orphand_core::{
        engine::Engine,
        model::{BootTime, Ignored, Stdio},
    };

    /// Nobody has this number.
    const NOBODY: ProcessId = ProcessId::new(u32::MAX, 1);

    fn driver() -> Driver {
        let scope = "no-control-group-is-called-so".parse().unwrap();
        Driver::new(Engine::default(), None).within(Some(scope))
    }

    fn ourselves() -> ProcessId {
        ProcessId::new(std::process::id(), 1)
    }

    /// What the engine hears of an exec.
    fn heard(process: ProcessId, parent: ProcessId, program: &str) -> String {
        let image = Image { exe: program.to_owned(), argv: vec![program.to_owned()], ..Image::default() };
        let (at, stdio) = (BootTime::default(), [Stdio::Pipe(1), Stdio::Pipe(2), Stdio::Null]);
        let ignored = Ignored::default();
        let event = ProcessEvent::Exec { at, process, parent, uid: 0, sid: 0, image, stdio, ignored };
        let mut input = Input::Process { event };
        driver().hide_outside(&mut input);
        let Input::Process { event: ProcessEvent::Exec { image, .. } } = input else { panic!("{input:?}") };
        image.exe
    }

    #[test]
    fn agents_and_servers_outside_are_any_program() {
        for program in ["/usr/bin/claude", "/usr/bin/mcp-server-files"] {
            assert_eq!(heard(ourselves(), NOBODY, program), OUTSIDE);
            assert_eq!(heard(NOBODY, ourselves(), program), OUTSIDE, "it has ended; its parent is outside");
            assert_eq!(heard(NOBODY, NOBODY, program), program, "nobody can tell");
        }
        for program in ["/bin/sh", "/usr/bin/tmux", "/usr/bin/gateway"] {
            assert_eq!(heard(ourselves(), NOBODY, program), program);
        }
    }

    #[test]
    fn what_is_said_to_a_program_outside_is_not_asked() {
        let about = |process| About::FirstMessage { processes: vec![process], stdin: Stdio::Pipe(1) };
        assert!(driver().answer_outside(&about(ourselves())).is_some());
        assert!(driver().answer_outside(&about(NOBODY)).is_none());
        let declared = About::Declared { process: ourselves(), lines: Vec::new() };
        assert!(driver().answer_outside(&declared).is_some());
        assert!(driver().within(None).answer_outside(&about(ourselves())).is_none());
    }
}
