//! A recorded trace through the same engine: it announces the same events again.
//!
//! A trace has every input, the passing of time included, so nothing is added here, not even at the end.

use super::{Driver, EffectHandler};
use orphand_core::{
    engine::Engine,
    model::{BootTime, Effect, Notice, TraceEntry},
};

/// Hands the inputs of `trace` to `engine` and its notices to `listen`, until the trace ends or is broken, or `listen` fails.
/// Effects other than notices are not carried out: their outcome is in the trace.
pub fn replay(
    trace: impl IntoIterator<Item = anyhow::Result<TraceEntry>>,
    engine: Engine,
    mut listen: impl FnMut(BootTime, Notice) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut driver = Driver::new(engine, None);
    for entry in trace {
        let TraceEntry { at, input } = entry?;
        driver.dispatch(at, input);
        driver.perform(&mut listen)?;
    }
    Ok(())
}

impl<T: FnMut(BootTime, Notice) -> anyhow::Result<()>> EffectHandler for T {
    fn carry_out(&mut self, _: &mut Driver, effect: Effect) -> anyhow::Result<()> {
        let Effect::Emit { at, notice } = effect else { return Ok(()) };
        self(at, *notice)
    }
}
