use super::*;
use crate::{
    model::{Guard, RunView, ServerView},
    sink::report::tests::filesystem,
};

fn planned(name: &str, state: &str, generation: Option<u64>, guards: &[Guard]) -> Planned {
    let run = RunView {
        agent: "claude".to_owned(),
        generation,
        uid: Some(0),
        unit: None,
        manager: None,
        invocation_id: None,
    };
    let server = ServerView { name: name.to_owned(), run: Some(run), ..filesystem() };
    Planned { server, state: state.to_owned(), guards: guards.to_vec() }
}

#[test]
fn what_is_meant_and_what_became_of_it() {
    let orphan = planned("server-filesystem", "orphan", Some(3), &[]);
    let hostile = planned("\u{1b}[2Jevil", "live", None, &[]);
    let stays = planned("time", "spared", Some(3), &[Guard::OwnUnit, Guard::OptedOut]);
    let paint = Paint::default();
    let shown = [
        render(&[orphan.clone(), hostile.clone(), stays.clone()], paint),
        render(&[], paint),
        outcome(&[&orphan], &[], paint),
        outcome(&[], &[&hostile, &stays], paint),
    ];
    assert!(!shown.concat().contains('\u{1b}'));
    insta::assert_snapshot!(shown.join("----\n"));
}
