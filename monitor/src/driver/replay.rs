//! A recorded trace through the same engine: what it told then, it tells now.
//!
//! Part of the shell, beside the daemon's loop, because it knows both a source and the engine. A trace has every
//! input, the passing of time included, so nothing is made up here: at the end of the trace it stops.

use std::ops::ControlFlow;

use crate::source::trace::TraceError;
use orphand_core::{
    engine::Engine,
    model::{BootTime, Effect, Notice, TraceEntry},
};

/// Hands the inputs of `trace` to `engine` and its notices to `tell`, until the trace ends or is broken, or
/// `tell` wants no more. Effects other than notices are not carried out: the trace has what became of them.
pub fn replay(
    trace: impl IntoIterator<Item = Result<TraceEntry, TraceError>>,
    engine: &mut Engine,
    mut tell: impl FnMut(BootTime, Notice) -> ControlFlow<()>,
) -> Result<(), TraceError> {
    for entry in trace {
        let TraceEntry { at, input } = entry?;
        engine.handle(at, input);
        while let Some(effect) = engine.poll_effect() {
            if let Effect::Emit { at, notice } = effect
                && tell(at, *notice).is_break()
            {
                return Ok(());
            }
        }
    }
    Ok(())
}
