//! "Was it you?": each signal of a time, or that there was none.

use jiff::{Timestamp, tz::TimeZone};

use super::{
    super::{
        human,
        paint::{self, Paint},
        text,
    },
    name, rows, table_of, when,
};
use orphand_core::model::{History, PastSignal, list};

const SIGNALS: &str = "TIME|SIGNAL|PROCESS|SERVER|RUN|WHY";

/// The signals of the asked time. "None" is an answer, too.
pub(super) fn render(past: &History, until: Timestamp, zone: &TimeZone, paint: Paint) -> String {
    let mut out = table_of(
        &SIGNALS.split('|').collect::<Vec<_>>(),
        &rows(past.signals.iter().map(|signal| row(signal, zone))),
        paint,
    );
    let since = past.since.unwrap_or(until);
    if past.signals.is_empty() {
        let (since, until) = (when(since, zone), when(until, zone));
        out = format!("Nothing was signalled by the daemon between {since} and {until}.\n");
    }
    let unknown = match past.begins {
        Some(begins) if begins <= since => None,
        Some(begins) => {
            Some(format!("The store begins at {}: it does not know what was before.", when(begins, zone)))
        }
        None => Some("No daemon has used this store yet.".to_owned()),
    };
    if let Some(unknown) = unknown {
        out.push_str(&paint.line(paint::WARNING, unknown));
    }
    out.push('\n');
    out
}

fn row(one: &PastSignal, zone: &TimeZone) -> Vec<String> {
    let evidence = list(&one.evidence);
    let why = match (one.asked, one.doubts.as_slice()) {
        (true, []) if evidence.is_empty() => "a person asked".to_owned(),
        (true, []) => format!("a person asked; {evidence}"),
        (true, doubts) => format!("a person asked, though unproven: {}", human::list_doubts(doubts)),
        (false, _) => format!("orphan: {evidence}"),
    };
    let clean = |text: &str| text::clean(text);
    vec![
        when(one.at, zone),
        one.signal.name().to_owned(),
        format!("{} {}", one.pid, clean(&one.program)).trim_end().to_owned(),
        if one.name.is_empty() { one.server.clone() } else { clean(&one.name) },
        one.run.as_ref().map_or_else(|| one.owner.as_deref().map_or_else(|| "-".to_owned(), clean), name),
        why,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use orphand_core::model::{Doubt, Evidence, Signal};

    fn time(text: &str) -> Timestamp {
        format!("2026-11-21T{text}Z").parse().unwrap()
    }

    fn shown(past: &History) -> String {
        render(past, past.until.unwrap(), &TimeZone::UTC, Paint::new(false))
    }

    fn around() -> History {
        History {
            since: Some(time("13:58:00")),
            until: Some(time("14:08:00")),
            begins: Some(time("08:00:00")),
            ..History::default()
        }
    }

    fn sent(at: &str, asked: bool, doubts: &[Doubt]) -> PastSignal {
        PastSignal {
            at: time(at),
            signal: Signal::Term,
            pid: 4711,
            start: 1,
            program: "node\u{1b}".to_owned(),
            server: "4711@1".to_owned(),
            name: "files".to_owned(),
            run: None,
            owner: Some("claude".to_owned()),
            asked,
            evidence: vec![Evidence::OwnerExited],
            doubts: doubts.to_vec(),
        }
    }

    #[test]
    fn nothing_is_an_answer() {
        let none =
            "Nothing was signalled by the daemon between 2026-11-21 13:58:00 and 2026-11-21 14:08:00.\n";
        assert_eq!(shown(&around()), format!("{none}\n"));
        let later = History { begins: Some(time("14:00:00")), ..around() };
        let unknown = "The store begins at 2026-11-21 14:00:00: it does not know what was before.\n";
        assert_eq!(shown(&later), format!("{none}{unknown}\n"));
        let never = shown(&History { begins: None, ..around() });
        assert!(never.contains("No daemon has used this store yet."), "{never}");
    }

    #[test]
    fn to_whom_and_on_which_verdict() {
        let signals = vec![
            sent("14:03:00", false, &[]),
            sent("14:04:00", true, &[]),
            sent("14:05:00", true, &[Doubt::Clients]),
        ];
        let shown = shown(&History { signals, ..around() });
        let lines: Vec<_> = shown.lines().collect();
        assert!(lines[0].starts_with("TIME "), "{shown}");
        assert!(lines[1].starts_with("2026-11-21 14:03:00  SIGTERM  4711 node"), "{shown}");
        assert!(lines[1].ends_with("claude  orphan: owner exited"), "{shown}");
        assert!(lines[2].ends_with("a person asked; owner exited"), "{shown}");
        assert!(lines[3].contains("a person asked, though unproven: "), "{shown}");
        assert!(!shown.contains('\u{1b}') && !shown.contains("Nothing"), "{shown}");
    }
}
