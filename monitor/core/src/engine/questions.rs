//! Questions to the host: each is kept with what is done with its answer.
//!
//! Invariant: each question is answered, however late, and the answer is used once, if the question is still open. An exit
//! is reported before anything that follows from it: a question about the exit of an agent is closed before any other
//! input, answered or not.

use std::{collections::BTreeMap, fmt};

use super::Engine;
use crate::{
    lineage::AgentKey,
    model::{About, Answer, BootTime, Effect, Haste, Share},
};

type Then = Box<dyn FnOnce(&mut Engine, BootTime, Answer) + Send>;

/// The questions that are open, by their token.
#[derive(Default)]
pub(super) struct Questions {
    open: BTreeMap<u64, Question>,
    pub(super) last: u64,
}

struct Question {
    then: Then,
    exit_of: Option<AgentKey>,
}

impl Engine {
    /// The agents about whose exit a question is open.
    pub fn exiting(&self) -> Vec<AgentKey> {
        self.questions.open.values().filter_map(|question| question.exit_of).collect()
    }

    pub(super) fn ask(
        &mut self,
        turn: Option<(Share, Haste)>,
        about: About,
        then: impl FnOnce(&mut Self, BootTime, Answer) + Send + 'static,
    ) {
        self.questions.last += 1;
        let token = self.questions.last;
        self.questions.open.insert(token, Question { then: Box::new(then), exit_of: None });
        self.effects.push_back(Effect::Ask { token, about, turn });
    }

    /// Asks something that has to be known when the exit of this agent is reported, if it can be.
    pub(super) fn ask_about_exit(
        &mut self,
        agent: AgentKey,
        about: About,
        then: impl FnOnce(&mut Self, BootTime, Answer) + Send + 'static,
    ) {
        self.ask(None, about, then);
        if let Some(question) = self.questions.open.get_mut(&self.questions.last) {
            question.exit_of = Some(agent);
        }
    }

    pub(super) fn answered(&mut self, now: BootTime, token: u64, answer: Answer) {
        if let Some(question) = self.questions.open.remove(&token) {
            (question.then)(self, now, answer);
        }
    }

    /// Reports the exits that a question is still open about: nothing has been answered, which [`Answer::Process`] says.
    pub(super) fn report_unanswered_exits(&mut self, now: BootTime) {
        let next = |engine: &Self| {
            let mut open = engine.questions.open.iter();
            open.find(|(_, question)| question.exit_of.is_some()).map(|(token, _)| *token)
        };
        // The end of an agent asks about memory, too.
        while let Some(token) = next(self) {
            self.answered(now, token, Answer::Process { process: None });
        }
    }
}

impl fmt::Debug for Questions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.open.keys()).finish()
    }
}
