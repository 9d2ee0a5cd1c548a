//! `orphand ps`: the one list.

use std::{io::stdout, os::fd::AsFd, thread, time::Duration};

use super::offline::look;
use crate::{
    cli::{self, ExitCode, logging},
    sink::list::{self, Arrangement, Layout, Sample},
};
use orphand_core::model::{Report, State};

/// Between two looks at the daemon.
const AGAIN: Duration = Duration::from_secs(2);

/// Between two looks through /proc, each of which costs far more.
const PROC_AGAIN: Duration = Duration::from_secs(10);

const CLEAR: &str = "\u{1b}[H\u{1b}[2J";

pub fn ps(flags: &cli::Ps) -> anyhow::Result<ExitCode> {
    logging::start();
    loop {
        let mut sample = look(&flags.places, flags.no_daemon)?;
        let sum = |report: &Report| list::sum(report, &report.blind);
        let all = sum(&sample.report);
        let any = list::narrow(&mut sample.report, &flags.state, flags.agent.as_deref());
        sample.none_of = (!any && all != sum(&sample.report)).then_some(all);
        let text = text(flags, &sample)?;
        if !flags.watch {
            super::print(&text)?;
            return Ok(code(flags, &sample, any));
        }
        let size = super::on_terminal().then(|| rustix::termios::tcgetwinsize(stdout()));
        let wrote = super::write(&match size {
            Some(Ok(size)) if !flags.json => format!("{CLEAR}{}", cut(&text, usize::from(size.ws_row))),
            Some(_) => format!("{CLEAR}{text}"),
            None => text,
        });
        if wrote.is_err() {
            return super::written(wrote);
        }
        thread::sleep(if sample.mode.is_some() { AGAIN } else { PROC_AGAIN });
    }
}

fn text(flags: &cli::Ps, sample: &Sample) -> anyhow::Result<String> {
    if flags.json {
        return Ok(list::json(sample, super::wall_clock())?);
    }
    let how =
        Arrangement { tree: flags.tree, unfolded: flags.tree, sort: flags.sort, ..Arrangement::default() };
    let mut entries = list::entries(sample);
    if flags.state.contains(&State::Leftover) {
        entries.extend(list::leftover_entries(sample));
    }
    let rows = list::rows(&mut entries, &sample.report.agents, &how);
    let layout = Layout { paint: super::paint(), width: width(stdout()), wide: flags.output.is_some() };
    Ok(list::render(sample, &entries, &rows, layout))
}

/// The list as far as the screen has lines for it, with all that stands below it.
fn cut(text: &str, lines: usize) -> String {
    let Some((list, below)) = text.split_once("\n\n") else { return text.to_owned() };
    let room = lines.saturating_sub(below.lines().count() + 3);
    let more = list.lines().count().saturating_sub(room);
    if more <= 1 || lines == 0 {
        return text.to_owned();
    }
    let shown: Vec<&str> = list.lines().take(room).collect();
    format!("{}\nand {more} more\n\n{below}", shown.join("\n"))
}

fn code(flags: &cli::Ps, sample: &Sample, any: bool) -> ExitCode {
    let is_narrowed = flags.agent.is_some() || !flags.state.is_empty();
    if flags.exit_code && sample.report.orphans().next().is_some() {
        ExitCode::Found
    } else if is_narrowed && !any {
        let states: Vec<&str> = flags.state.iter().map(|state| state.word()).collect();
        let states = if states.is_empty() { String::new() } else { format!(" {}", states.join(" or ")) };
        let agent = flags.agent.as_deref().map(orphand_core::model::text::quoted);
        let agent = agent.map(|name| format!(" of {name}")).unwrap_or_default();
        let what = if flags.state == [State::Leftover] { "" } else { " server" };
        super::unmatched(&format!("no{states}{what}{agent} is there"))
    } else {
        ExitCode::Done
    }
}

fn width(out: impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(out).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_a_screen_has_no_lines_for_is_counted() {
        let text = "SERVER\na\nb\nc\nd\n\n4 servers.\n";
        assert_eq!(super::cut(text, 7), "SERVER\na\nb\nand 2 more\n\n4 servers.\n");
        for lines in [0, 8] {
            assert_eq!(super::cut(text, lines), text);
        }
    }
}
