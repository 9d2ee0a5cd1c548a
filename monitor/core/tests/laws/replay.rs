//! Handing a recorded log to another engine, as `orphand replay` does.

use std::collections::BTreeMap;

use orphand_core::model::{About, Answer, BootTime, Effect, Input};

use crate::{
    host::{Core, Host, engine},
    log::Log,
};

/// All effects of an engine that is given what the log of this host says, each record `times` times.
pub fn replay(host: &Host, times: usize) -> Vec<Effect> {
    feed(&mut engine(&host.policy, &host.truth), &host.log, times)
}

/// The same with any core. A question is answered as it was answered when it was asked at that time; one that
/// was not asked then gets no answer.
pub fn feed(core: &mut dyn Core, log: &Log, times: usize) -> Vec<Effect> {
    let answers = answers(log);
    let mut effects = Vec::new();
    for (now, given) in &log.given {
        let times = match given {
            Input::Answered { .. } => continue,
            Input::Process { .. } | Input::Gone { .. } => times,
            _ => 1,
        };
        for _ in 0..times {
            core.handle(*now, given.clone());
            while let Some(effect) = core.poll_effect() {
                if let Effect::Ask { token, about, .. } = &effect {
                    let known = answers.iter().find(|(at, asked, _)| at == now && asked == about);
                    if let Some((_, _, answer)) = known {
                        core.handle(*now, Input::Answered { token: *token, answer: answer.clone() });
                    }
                }
                effects.push(effect);
            }
        }
    }
    effects
}

/// Which question was answered how, and when.
fn answers(log: &Log) -> Vec<(BootTime, About, Answer)> {
    let asked: BTreeMap<u64, &About> = log
        .effects
        .iter()
        .filter_map(|(_, e)| match e {
            Effect::Ask { token, about, .. } => Some((*token, about)),
            _ => None,
        })
        .collect();
    let answered = log.given.iter().filter_map(|(now, given)| match given {
        Input::Answered { token, answer } => Some((*now, (*asked.get(token)?).clone(), answer.clone())),
        _ => None,
    });
    answered.collect()
}

/// What the world gets to see: notices and signals.
pub fn visible(effects: &[Effect]) -> Vec<Effect> {
    let outer = |e: &&Effect| matches!(e, Effect::Emit { .. } | Effect::Signal { .. });
    effects.iter().filter(outer).cloned().collect()
}

pub fn effects(log: &Log) -> Vec<Effect> {
    log.effects.iter().map(|(_, e)| e.clone()).collect()
}
