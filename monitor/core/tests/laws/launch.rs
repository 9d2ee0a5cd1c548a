//! How a server is started: the wire, the forks and execs of its launch chain.

use orphand_core::model::{ExitStatus, ProcessId};

use crate::{
    files::End,
    kernel::Conduct,
    programs::{Recipe, Step},
    world::{ROOM, World},
};

/// How a server is started.
#[derive(Clone, Copy, Debug)]
pub struct Launch {
    pub recipe: Recipe,
    /// A socket pair instead of pipes.
    pub socket: bool,
    /// The host's end is not closed on exec: later children inherit it.
    pub leaky: bool,
    pub setsid: bool,
    /// A go-between forks it and ends.
    pub double_fork: bool,
    /// It moves its wire off standard input.
    pub moves_wire: bool,
    pub uid: Option<u32>,
    pub conduct: Conduct,
}

impl Default for Launch {
    fn default() -> Self {
        Self {
            recipe: Recipe::Console,
            socket: false,
            leaky: false,
            setsid: false,
            double_fork: false,
            moves_wire: false,
            uid: None,
            conduct: Conduct::default(),
        }
    }
}

impl World {
    /// The system calls of a launch: the chain, the server's end of the wire, the go-between.
    pub fn launch(
        &mut self,
        owner: ProcessId,
        launch: Launch,
    ) -> Option<(Vec<ProcessId>, [End; 2], Option<ProcessId>)> {
        let kernel = &mut self.host.kernel;
        kernel.get(owner).filter(|_| kernel.room() > ROOM)?;
        let (theirs, ours) = if launch.socket { kernel.socketpair(owner) } else { kernel.pipe(owner) };
        let (from, to) = if launch.socket { (ours, theirs) } else { kernel.pipe(owner) };
        let files = &mut kernel.get_mut(owner)?.files;
        files.open_anywhere(ours, !launch.leaky);
        if !launch.socket {
            files.open_anywhere(from, true);
        }
        let mut at = self.fork(owner)?;
        self.host.kernel.open(at, 0, theirs, false);
        self.host.kernel.open(at, 1, to, false);
        let go_between = launch.double_fork.then_some(at);
        if let Some(between) = go_between {
            let child = self.fork(between);
            self.exit(between, ExitStatus::Code(0));
            at = child?;
        }
        if launch.setsid {
            self.setsid(at);
        }
        if let (Some(uid), Some(p)) = (launch.uid, self.host.kernel.get_mut(at)) {
            p.uid = uid;
        }
        let mut chain = vec![at];
        let steps = launch.recipe.steps();
        for (i, step) in steps.iter().enumerate() {
            let last = i + 1 == steps.len();
            let waits = matches!(steps.get(i + 1), Some(Step::Fork(_)));
            let conduct = if last { launch.conduct } else { Conduct { waits, ..Conduct::default() } };
            let program = match step {
                Step::Exec(program) => program,
                Step::Fork(program) => {
                    at = self.fork(at)?;
                    chain.push(at);
                    program
                }
            };
            self.exec(at, program, conduct);
        }
        if launch.moves_wire {
            self.host.kernel.get_mut(at)?.files.move_wire();
        }
        Some((chain, [theirs, to], go_between))
    }
}
