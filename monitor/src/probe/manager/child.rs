//! The [helper] that asks the manager from where the manager accepts questions: with the rights of the
//! manager's user and in its PID namespace. So the reply is parsed with no more rights than its sender has.

use std::{os::fd::OwnedFd, time::Duration};

use super::{ManagerError, PATIENCE, Question, bus};
use crate::helper::{self, Order, Task};
use orphand_core::model::UnitProperties;

type Said = Result<UnitProperties, ManagerError>;

/// The answer to a question, in the helper. The one file is the socket.
pub(in crate::probe) fn help(question: &[u8], files: &[OwnedFd]) -> Option<Vec<u8>> {
    let [socket] = files else { return None };
    helper::answered(question, |question: Question| bus::ask(socket, &question))
}

/// The identity and place from which the child asks.
#[derive(Debug)]
pub(super) struct Asker {
    /// The user id of the manager, for messages.
    pub uid: u32,
    /// The user and group to run as, if they differ from ours.
    pub user: Option<(u32, u32)>,
    /// The PID namespace to enter, if it differs from ours.
    pub namespace: Option<OwnedFd>,
}

/// Starts a helper that asks the manager at `socket`, and returns its answer.
pub(super) fn ask(asker: Asker, socket: OwnedFd, question: &Question) -> Said {
    let Asker { uid, user, namespace } = asker;
    let patience = PATIENCE + Duration::from_secs(1);
    let order = Order { task: Task::Manager, files: vec![socket], user, namespace, patience };
    helper::ask(order, question).unwrap_or_else(|why| {
        let what = format!("cannot ask its manager as user {uid} ({why})");
        Err(ManagerError::Other(format!("{what}: run `orphand doctor` as that user")))
    })
}
