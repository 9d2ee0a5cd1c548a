//! The text of `orphand doctor`: checks, units with agents, and the drop-ins that fix what is wrong.

use std::fmt::Write as _;

use super::{
    paint::{self, Paint},
    text,
};
use orphand_core::model::{Checkup, Health, UnitCheckup, UnitProperties};

pub fn render(found: &Checkup, paint: Paint) -> String {
    let mut out = String::new();
    for check in &found.checks {
        let (style, word) = match check.is {
            Health::Ok => (paint::GOOD, "ok   "),
            Health::Note => (paint::NOTE, "note "),
            Health::Wrong => (paint::ALARM, "wrong"),
        };
        let _ =
            writeln!(out, "{}  {}: {}", paint.text(style, word), check.name, text::sanitise(&check.found));
    }
    for unit in &found.units {
        self::unit(&mut out, unit, paint);
    }
    if found.units.is_empty() {
        out.push_str("No unit contains an agent now.\n");
    }
    out
}

fn unit(out: &mut String, found: &UnitCheckup, paint: Paint) {
    let (style, word) = match (&found.advice, &found.blind) {
        (Some(_), _) => (paint::ALARM, "wrong"),
        (None, Some(_)) => (paint::WARNING, "?    "),
        (None, None) => (paint::GOOD, "ok   "),
    };
    let mut hosts: Vec<_> = found.agents.iter().map(|(name, pid)| format!("{name} {pid}")).collect();
    if found.orphans > 0 {
        hosts.push(text::count(found.orphans as u64, "orphan", "orphans"));
    }
    let name = paint.text(paint::NAME, text::sanitise(&found.unit.name));
    let _ = write!(out, "{}  {name} ({})", paint.text(style, word), text::sanitise(&hosts.join(", ")));
    if let Some(shown) = &found.properties {
        let _ = write!(out, ": {}", text::sanitise(&properties(shown)));
    }
    if let Some(why) = &found.blind {
        let _ = write!(out, ": cannot find out how it is stopped: {}", text::sanitise(why));
    }
    out.push('\n');
    if let Some(advice) = &found.advice {
        let _ = writeln!(out, "\n  {}\n", text::sanitise(&advice.why));
        if let Some(place) = &advice.place {
            let _ = writeln!(out, "  {}", paint.text(paint::DIM, format!("# {}", text::sanitise(place))));
        }
        let _ = writeln!(out, "  {}", paint.text(paint::NOTE, text::sanitise(&advice.command)));
        for line in advice.drop_in.lines() {
            let _ = writeln!(out, "    {line}");
        }
        out.push('\n');
    }
}

fn properties(shown: &UnitProperties) -> String {
    let UnitProperties { kill_mode, restart, .. } = shown;
    let stop = shown.timeout_stop_ms.map_or_else(|| "infinity".to_owned(), text::millis);
    let delegate = if shown.delegate { "yes" } else { "no" };
    format!("KillMode={kill_mode} Restart={restart} TimeoutStopSec={stop} Delegate={delegate}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use orphand_core::model::{Check, Place, Unit};

    fn checkup(name: &str, kill_mode: &str, place: Place) -> UnitCheckup {
        let unit = Unit { manager: String::new(), name: name.to_owned() };
        let shown = UnitProperties {
            main_pid: 7,
            kill_mode: kill_mode.to_owned(),
            restart: "always".to_owned(),
            timeout_stop_ms: Some(90_000),
            ..UnitProperties::default()
        };
        let advice = shown.advice(&unit, place, false);
        let agents = vec![("claude".to_owned(), 7)];
        UnitCheckup { unit, place, agents, orphans: 0, properties: Some(shown), blind: None, advice }
    }

    #[test]
    fn a_unit_that_leaks_and_its_drop_in() {
        let here = Place { user: Some(1000), container: None };
        let mut left = checkup("left.service", "mixed", Place::default());
        (left.agents, left.orphans) = (Vec::new(), 14);
        let mut blind = checkup("odd.service", "mixed", Place::default());
        (blind.properties, blind.blind) = (None, Some("it does not answer\n\u{1b}[31m".to_owned()));
        let found = Checkup {
            checks: vec![
                Check::ok("rights", "root"),
                Check::note("daemon", "none runs"),
                Check::wrong("store", "cannot write"),
            ],
            units: vec![checkup("bot.service", "process", here), left, blind],
        };
        assert!(found.is_wrong());
        insta::assert_snapshot!(render(&found, Paint::new(false)), @r"
        ok     rights: root
        note   daemon: none runs
        wrong  store: cannot write
        wrong  bot.service (claude 7): KillMode=process Restart=always TimeoutStopSec=1 min 30 s Delegate=no

          KillMode=process: only the main process is ended: everything the agent started stays at every stop and restart

          # as user 1000
          systemctl --user edit bot.service
            [Service]
            # `mixed` instead, if the main process ends its children by itself and needs time for it.
            KillMode=control-group
            TimeoutStopSec=30s

        ok     left.service (14 orphans): KillMode=mixed Restart=always TimeoutStopSec=1 min 30 s Delegate=no
        ?      odd.service (claude 7): cannot find out how it is stopped: it does not answer\n\x1b[31m
        ");
    }

    #[test]
    fn nobody() {
        assert_eq!(render(&Checkup::default(), Paint::new(false)), "No unit contains an agent now.\n");
    }
}
