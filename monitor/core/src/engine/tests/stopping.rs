//! Whose unit is being stopped is left to its manager, for a time.

use super::story::Story;
use crate::model::{Policy, Signal};

fn judged(seconds: u64, then: u64, goes_on: bool) -> (Vec<String>, Vec<(u32, Signal)>) {
    let mut story = Story::agent_with_server(Policy::default());
    story.stopping = seconds > 0;
    story.end(20);
    story.pass_secs(seconds.max(1));
    story.stopping = goes_on;
    story.pass_secs(then);
    (story.told(), story.sent())
}

#[test]
fn what_its_manager_is_ending_is_left_to_that() {
    let (told, sent) = judged(60, 0, true);
    assert_eq!(told, ["agent_exited", "orphan_suspected", "orphan_unproven stopping"]);
    assert_eq!(sent, []);
    // The unit has stopped without it.
    let (_, sent) = judged(60, 30, false);
    assert_eq!(sent.first(), Some(&(30, Signal::Term)));
    // It is never done with.
    let (_, sent) = judged(60, 300, true);
    assert_eq!(sent.first(), Some(&(30, Signal::Term)));
    // No unit is being stopped.
    let (_, sent) = judged(0, 30, false);
    assert_eq!(sent.first(), Some(&(30, Signal::Term)));
}
