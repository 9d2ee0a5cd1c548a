//! The scene of servers and copies: the raw facts of a moment ([`crate::read`]).

use super::Probe;
use crate::{
    host::Beside,
    read::{Pass, Reader},
};
use orphand_core::model::{
    Stdio,
    scene::{Scene, SceneQuestion},
};

impl Probe {
    /// The scene of these servers and copies. This blocks for the time of an inspection.
    pub fn scene(&self, question: &SceneQuestion) -> Scene {
        self.scenes(&[question]).pop().unwrap_or_default()
    }

    /// A scene for each of these questions, of one moment. This blocks for the time of an inspection.
    pub fn scenes(&self, questions: &[&SceneQuestion]) -> Vec<Scene> {
        let pass = |wanted: &[Stdio], beside: &Beside| self.pass(wanted, beside);
        let pass: &Pass<'_> = &pass;
        let reader = Reader {
            proc: &self.proc,
            pass: self.passes.is_some().then_some(pass),
            tasks: &|| self.all_tasks(),
            unit: &|process| self.unit(process),
            caller: &|port, holder| self.caller(port, holder),
        };
        reader.scenes(questions)
    }
}
