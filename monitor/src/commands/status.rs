//! `orphand status` and `orphand reload`.

use jiff::tz::TimeZone;
use serde_json::json;

use crate::{
    cli::{self, Common, ExitCode},
    os::clock,
    sink::status as page,
};
use orphand_core::model::Reloaded;

/// Prints whether the running daemon is well.
pub fn status(flags: &cli::Status) -> anyhow::Result<ExitCode> {
    let (_, client) = super::configured(&flags.common.places)?;
    let status = client.status(flags.pss)?;
    let mut all = serde_json::to_value(&status)?;
    if let Some(all) = all.as_object_mut() {
        all.insert("totals".to_owned(), json!(status.report.totals()));
    }
    super::answer(flags.common.json, &all, |_| {
        page::render(&status, clock::now(), super::wall_clock(), &TimeZone::system(), super::paint())
    })
}

/// Makes the running daemon read its configuration again.
pub fn reload(flags: &Common) -> anyhow::Result<ExitCode> {
    let reloaded = super::daemon(&flags.places).reload()?;
    super::answer(flags.json, &reloaded, |Reloaded { later, .. }| match later.join(", ") {
        none if none.is_empty() => "Reloaded.\n".to_owned(),
        later => format!("Reloaded. {later} changed: this takes effect at the next start.\n"),
    })
}
