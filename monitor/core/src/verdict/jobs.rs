//! Jobs: what a server, or a shell of its tools, started to go on without it. Such a process has been let go, also while it has
//! streams of the server's. Used by [`super::membership`] alone.

use super::membership::{Bonds, age, ignores_interrupt};
use crate::{
    lineage::{Left, Node},
    model::{
        Stdio,
        scene::{ProcessRow, Wait},
    },
    recognise::Role,
};

/// Of so many that wait for one another, the last one for a job, it is looked whether somebody waits for the first.
const LINKS: usize = 8;

impl Bonds<'_> {
    /// Whether it works for somebody else than its parent: that does not wait for it, and is a shell (`job &`) or gave it an output
    /// that is no pipe to the server (`Popen(.., stdout=log)`, its own standard error, `job | logger`, a connection that somebody
    /// dialled). A shell without a terminal that waits for another one has had the job ignore SIGINT.
    pub(super) fn works_apart(&self, facts: &ProcessRow) -> bool {
        let parent = self.inspection.rows.parent(facts).filter(|row| row.full);
        let ignores = |row: &ProcessRow| ignores_interrupt(self.inspection, row);
        // Two files are not known to be one, unless a copy has what its creator has.
        let origin = |row: &ProcessRow| self.inspection.node(row.process).map(Node::origin);
        let hands_output_on = |parent: &ProcessRow| {
            let is_a_copy = || origin(facts).is_some_and(|own| origin(parent) == Some(own));
            parent.stdio[1] == facts.stdio[1] && (facts.stdio[1].is_wire() || is_a_copy())
        };
        let is_left = |parent: &ProcessRow| {
            self.is_a_shell(parent)
                || ((!facts.stdio[1].is_wire()
                    || facts.stdio[1] == parent.stdio[2]
                    || self.is_read_elsewhere(facts))
                    && !hands_output_on(parent)
                    && !self.inspection.rows.has_a_channel(facts.process, &self.held)
                    && !self.waits_for_input(facts))
        };
        // A shell waits for what it started last, unless that is in the background, too. Below `nohup host &` all ignore SIGINT,
        // nobody does where a shell gives each job a process group of its own (`set -m`), and how it was is not known of what
        // was there before the daemon.
        let tells_nothing =
            |parent: &ProcessRow| ignores(parent) || facts.group != parent.group || self.began_unseen(facts);
        let is_older = |parent: &ProcessRow| {
            (matches!(facts.stdio[1], Stdio::File | Stdio::Null) || tells_nothing(parent))
                && self.is_a_shell(parent)
                && self.youngest.get(&parent.process).is_some_and(|youngest| *youngest > age(facts))
        };
        let waits_for_another = |parent: &ProcessRow| {
            let is_told_apart =
                ignores(facts) && !ignores(parent) && self.interruptible.contains(&parent.process);
            is_told_apart || is_older(parent)
        };
        // Whose own waiting nobody waits for keeps nobody there (`cd x && job > log &`, `Popen("cd x && job > log", shell=True)`).
        let is_in_background = |row: &ProcessRow| {
            let mut below = row;
            let mut is_plain = true;
            for _ in 0..LINKS {
                let Some(above) = self.inspection.rows.parent(below).filter(|row| row.full) else { break };
                let is_shell = self.is_a_shell(above);
                is_plain &= self.only_inherits(below);
                if !above.awaits(below) {
                    // Who is told of ends may wait so (node).
                    let is_told = above.reaps || above.hears_of_ends;
                    let is_own = || self.inspection.server.contains(above.process) && is_left(above);
                    return is_shell || (is_plain && !is_told && is_own());
                }
                if !is_shell && !is_plain {
                    break;
                }
                below = above;
            }
            false
        };
        let is_awaited = |parent: &ProcessRow| {
            parent.awaits(facts) && !waits_for_another(parent) && !is_in_background(parent)
        };
        parent.is_some_and(|parent| is_left(parent) && !is_awaited(parent)) && !self.was_tied(facts)
    }

    /// Whether nothing but what the server writes to its standard input brings it anything, in the session of the server, and it waits
    /// for that.
    pub(super) fn waits_for_input(&self, facts: &ProcessRow) -> bool {
        let is_apart = !self.members.sessions.contains(&facts.sid) || self.is_adopted(facts);
        let rests = facts.waits == Wait::Ends && !facts.awaits_child && !facts.reaps;
        !is_apart && rests && self.inspection.rows.has_input_alone(facts.process, &self.held)
    }

    /// Whether it was started to go on: it was left, or it ignores SIGHUP, and the server itself does not, or it began below a
    /// `nohup` of its own. What was tied when the server began to be ended stays so.
    pub(super) fn shall_outlive(&self, facts: &ProcessRow) -> bool {
        !self.was_tied(facts)
            && (self.was_left(facts)
                || (facts.ignores_hangup && !self.core_ignores_hangup && !self.only_inherits_it(facts))
                || self.began_below_nohup(facts))
    }

    /// Whether it ignores SIGHUP because all did, from before the server began down to it: below `nohup agent &`. While the core
    /// lives that shows what it hands on.
    fn only_inherits_it(&self, facts: &ProcessRow) -> bool {
        let node = self.inspection.node(facts.process).filter(|_| self.members.core.is_empty());
        let ran = |node: &Node| node.witnessed && node.origin().process == node.id;
        node.is_some_and(|node| ran(node) && node.exec.ignored.hangup && node.outlives.is_none())
    }

    /// Whether it began below a `nohup` that the server itself is not below. Many a program takes back what is ignored (node).
    fn began_below_nohup(&self, facts: &ProcessRow) -> bool {
        let mark = |process| self.inspection.node(process).and_then(|node| node.outlives);
        let own = mark(facts.process);
        own.is_some() && !self.members.core.iter().any(|process| mark(*process) == own)
    }

    /// A shell without a terminal has what it runs in the background ignore SIGINT, or, with job control, gives each job a process group
    /// of its own, in the background or not. A browser is told by what drives it, whoever started it, and so is what has a
    /// channel to it (its handler of crashes). A script that becomes a browser starts what reads its output for that alone
    /// (`exec > >(cat)`, google-chrome).
    pub(super) fn was_left(&self, facts: &ProcessRow) -> bool {
        match self.inspection.node(facts.process).map(|node| node.left).unwrap_or_default() {
            Left::No => false,
            Left::Apart => {
                facts.sid != self.inspection.server.session
                    && !self.is_a_browser(facts)
                    && !self.inspection.rows.has_a_channel(facts.process, &self.held)
            }
            Left::InBackground => {
                ignores_interrupt(self.inspection, facts)
                    || self.began_unseen(facts)
                    || self.is_under_job_control(facts)
            }
            Left::Whole => {
                !(self.is_of_a_browser(facts)
                    && self.inspection.rows.is_joined(facts.process, &self.held, |stream| stream == 0))
            }
        }
    }

    /// Whether it is in a process group that a shell made for it: neither that of the server nor the first one of its session.
    fn is_under_job_control(&self, facts: &ProcessRow) -> bool {
        let main = self.inspection.rows.row(self.inspection.server.main_process());
        facts.group != facts.sid && main.is_some_and(|main| main.group != facts.group)
    }

    /// Whether nobody saw its program begin: what it had ignored then, and takes back, is not known.
    fn began_unseen(&self, facts: &ProcessRow) -> bool {
        self.inspection.node(facts.process).is_none_or(|node| node.provenance.is_found())
    }

    /// Whether it is no main process, nor a copy of one, and has no streams but those of the server, or files: nobody there reads what it
    /// writes, nor writes what it reads.
    fn only_inherits(&self, row: &ProcessRow) -> bool {
        let server = self.inspection.server;
        let origin = |process| self.inspection.node(process).map(Node::origin);
        let is_no_copy = origin(row.process).is_some_and(|own| origin(server.main_process()) != Some(own));
        let mut streams = row.stdio[..2].iter();
        is_no_copy
            && streams.all(|stream| !stream.is_wire() || server.wires().contains(stream))
            && !self.inspection.rows.has_a_channel(row.process, &self.held)
    }

    pub(super) fn is_a_shell(&self, row: &ProcessRow) -> bool {
        self.inspection.rules.role(&row.image) == Role::Shell
    }

    /// Whether its output is a pipe to others, none of which belongs to the server.
    fn is_read_elsewhere(&self, facts: &ProcessRow) -> bool {
        let [_, output, _] = facts.stdio;
        !self.inspection.server.wires().contains(&output)
            && self.inspection.rows.is_read_elsewhere(facts.process, output, &self.held)
    }
}
