//! `cargo xtask pictures`: makes the pictures of the pages in `docs/` from a real run: the tests that look at the web page
//! and at terminals keep what they saw.

use std::{fmt::Write as _, fs};

use anstyle_svg::{Term, WIN10_CONSOLE};
use anyhow::{Context as _, Result, ensure};

use crate::{command, files, privilege, setup, workspace};

/// The tests that keep what they see, by the beginnings of their names.
const TESTS: [&str; 3] = ["page::a_person_sees", "top::the_view_names", "published::the_example_leaks"];

/// What the tests call their pictures, and what they are called in `docs/pictures`.
const PICTURES: [(&str, &str); 4] = [
    ("generations-1280-light.png", "page-light.png"),
    ("generations-1280-dark.png", "page-dark.png"),
    ("top.ansi", "top.svg"),
    ("leak.ansi", "leak.svg"),
];

/// A picture has fewer bytes than this.
const BYTES: usize = 300_000;

pub fn main() -> Result<()> {
    setup::bpf()?;
    setup::tests()?;
    let seen = workspace::target_dir()?.join("pictures");
    files::folder(&seen)?;
    workspace::build()?;
    let which = ["test", "-p", "tests", "--test", "all"];
    command::run(workspace::cargo().args(which).arg("--no-run"))?;
    let mut test = privilege::command("env", "watching real processes")?;
    test.arg(format!("ORPHAND_PICTURES={}", seen.display())).arg("cargo").args(which);
    command::run(test.args(["--", "--ignored"]).args(TESTS).current_dir(workspace::root()))?;
    let docs = workspace::root().join("docs/pictures");
    files::folder(&docs)?;
    for (name, kept) in PICTURES {
        let told = fs::read(seen.join(name)).with_context(|| format!("no test made {name}"))?;
        let picture = match name {
            "top.ansi" => svg(&String::from_utf8(told)?).into_bytes(),
            "leak.ansi" => played(&String::from_utf8(told)?).into_bytes(),
            _ => told,
        };
        ensure!(picture.len() < BYTES, "{kept} has {} bytes, {BYTES} are too many", picture.len());
        files::write(&docs.join(kept), &picture)?;
        command::say("pictures", &format!("docs/pictures/{kept}: {} kB", picture.len() / 1000));
    }
    Ok(())
}

/// No line is waited for longer than this, in seconds: what takes longer is told by the times in the lines.
const LONGEST_PAUSE: f32 = 1.5;

/// Between two lines of one moment, in seconds.
const STEP: f32 = 0.4;

/// How long all of it stays before it begins again, in seconds.
const END: f32 = 6.0;

/// Each line appears after the one before, with the pauses of the times at the beginnings of the lines, shortened.
fn played(ansi: &str) -> String {
    let svg = svg(ansi);
    let begins = beginnings(ansi);
    let all = begins.last().copied().unwrap_or(0.0) + END;
    let mut style = String::new();
    let mut picture = String::with_capacity(svg.len() * 2);
    let mut lines = begins.iter();
    for line in svg.lines() {
        match line.trim_start().strip_prefix("<tspan x=").and_then(|_| lines.next()) {
            Some(at) => {
                let number = begins.len() - lines.len();
                let percent = at / all * 100.0;
                let _ = writeln!(
                    style,
                    "    @keyframes k{number} {{ 0% {{ visibility: hidden; }} {percent:.2}%, 100% {{ visibility: visible; }} }}\n    \
                     .l{number} {{ animation: k{number} {all:.1}s step-end infinite; }}"
                );
                let line = line.replacen("<tspan x=", &format!("<tspan class=\"l{number}\" x="), 1);
                picture.push_str(&line);
            }
            None => picture.push_str(line),
        }
        picture.push('\n');
    }
    picture.replacen("</style>", &format!("{style}  </style>"), 1)
}

/// What a terminal showed, as it stood.
fn svg(ansi: &str) -> String {
    Term::new().palette(WIN10_CONSOLE).render_svg(ansi.trim_end().trim_end_matches(['$', '\n']))
}

/// When each line appears, in seconds.
fn beginnings(ansi: &str) -> Vec<f32> {
    let mut at = 0.0;
    let mut before = None;
    let times = ansi.trim_end().lines().map(|line| {
        let time = seconds(line);
        let pause = match (before, time) {
            (Some(before), Some(time)) if time > before => {
                f32::from(u16::try_from(time - before).unwrap_or(1))
            }
            _ => STEP,
        };
        before = time.or(before);
        at += pause.min(LONGEST_PAUSE);
        at
    });
    times.collect()
}

/// The seconds of the day that a line begins with, as `12:03:59`, perhaps after a colour.
fn seconds(line: &str) -> Option<u32> {
    let at = line.find(':')?.checked_sub(2)?;
    let parts: Vec<u32> = line.get(at..at + 8)?.split(':').map_while(|part| part.parse().ok()).collect();
    let [hours, minutes, seconds] = parts[..] else { return None };
    Some((hours * 60 + minutes) * 60 + seconds)
}
