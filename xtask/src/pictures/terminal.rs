//! What a terminal showed, as SVG: as it stood, or line by line in the order in which it came.

use std::fmt::Write as _;

use anstyle_svg::{Term, WIN10_CONSOLE};

/// No line is waited for longer than this, in seconds: what takes longer is told by the times in the lines.
const LONGEST_PAUSE: f32 = 1.5;

/// Between two lines of one moment, in seconds.
const STEP: f32 = 0.4;

/// How long all of it stays before it begins again, in seconds.
const END: f32 = 6.0;

/// One picture.
pub fn still(ansi: &str) -> Vec<u8> {
    svg(ansi).into_bytes()
}

/// Each line appears after the one before, with the pauses of the times at the beginnings of the lines, shortened.
pub fn played(ansi: &str) -> Vec<u8> {
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
    picture.replacen("</style>", &format!("{style}  </style>"), 1).into_bytes()
}

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
