//! A checkup for a person: what was looked at, each unit with agents, and the drop-ins that mend what is wrong.

use std::fmt::Write as _;

use super::{
    paint::{self, Paint},
    text,
};
use crate::model::{Checkup, UnitCheckup};

/// The checkup as text.
pub fn render(found: &Checkup, paint: Paint) -> String {
    let mut out = String::new();
    for check in &found.checks {
        let (style, word) = if check.good { (paint::GOOD, "ok   ") } else { (paint::ALARM, "wrong") };
        let _ =
            writeln!(out, "{}  {}: {}", paint.text(style, word), check.name, text::sanitise(&check.found));
    }
    for unit in &found.units {
        self::unit(&mut out, unit, paint);
    }
    if found.units.is_empty() {
        out.push_str("No unit hosts an agent now.\n");
    }
    out
}

fn unit(out: &mut String, found: &UnitCheckup, paint: Paint) {
    let (style, word) = match (&found.advice, &found.blind) {
        (Some(_), _) => (paint::ALARM, "wrong"),
        (None, Some(_)) => (paint::WARNING, "?    "),
        (None, None) => (paint::GOOD, "ok   "),
    };
    let agents: Vec<_> = found.agents.iter().map(|(name, pid)| format!("{name} {pid}")).collect();
    let name = paint.text(paint::NAME, text::sanitise(&found.unit.name));
    let _ = write!(out, "{}  {name} ({})", paint.text(style, word), text::sanitise(&agents.join(", ")));
    if let Some(shown) = &found.properties {
        let delegate = if shown.delegate { "yes" } else { "no" };
        let _ = write!(
            out,
            ": KillMode={} Restart={} TimeoutStopSec={} Delegate={delegate}",
            text::sanitise(&shown.kill_mode),
            text::sanitise(&shown.restart),
            text::sanitise(&shown.timeout_stop),
        );
    }
    if let Some(why) = &found.blind {
        let _ = write!(out, ": {}", text::sanitise(why));
    }
    out.push('\n');
    if let Some(advice) = &found.advice {
        let _ = writeln!(out, "\n  {}\n", text::sanitise(&advice.why));
        let _ = writeln!(out, "  {}", paint.text(paint::NOTE, text::sanitise(&advice.command)));
        for line in advice.drop_in.lines() {
            let _ = writeln!(out, "    {line}");
        }
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Check, Unit, UnitProperties};

    #[test]
    fn a_unit_that_leaks_and_its_drop_in() {
        let unit = Unit { manager: String::new(), name: "bot.service".to_owned() };
        let shown = UnitProperties::parse(
            "MainPID=7\nKillMode=process\nRestart=always\nTimeoutStopUSec=1min 30s\nDelegate=no\n",
        );
        let advice = shown.advice(&unit, false, false);
        let found = Checkup {
            checks: vec![Check { name: "kernel".to_owned(), good: true, found: "hooks".to_owned() }],
            units: vec![UnitCheckup {
                unit,
                agents: vec![("claude".to_owned(), 7)],
                properties: Some(shown),
                blind: None,
                advice,
            }],
        };
        assert!(found.is_wrong());
        insta::assert_snapshot!(render(&found, Paint::new(false)), @r"
        ok     kernel: hooks
        wrong  bot.service (claude 7): KillMode=process Restart=always TimeoutStopSec=1min 30s Delegate=no

          KillMode=process: only the main process is ended: whatever the agent started stays at every stop and restart

          systemctl edit bot.service
            [Service]
            # `mixed` instead, if the main process ends its children by itself and needs time for it.
            KillMode=control-group
            TimeoutStopSec=30s
        ");
    }
}
