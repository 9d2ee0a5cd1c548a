//! What a process is there for: a shell that takes a person's commands, a debugger, a browser, or what opens something
//! for a person.

use super::{
    carriers::Row,
    known_programs::{BROWSERS, DEBUGGERS, OPENERS, SHELLS, contains},
    program::{Carrier, command_name, words},
    text::{base, without_deleted},
};
use crate::model::Image;

pub fn is_browser(name: &str) -> bool {
    contains(BROWSERS, name)
}

/// Whether it opens a file or an address for a person, in whatever program the desktop has for it.
pub fn is_opener(image: &Image) -> bool {
    let opens = |word: &String| contains(OPENERS, base(word));
    match &*image.argv {
        [head, ..] if opens(head) => true,
        // Most are shell scripts.
        [head, second, ..] => {
            contains(SHELLS, base(head)) && opens(second) || base(head) == "gio" && second == "open"
        }
        _ => false,
    }
}

/// Whether it is a shell without a command and without a script: it waits for what a person types.
pub fn is_shell_of_a_person(image: &Image) -> bool {
    let words = words(image);
    let [head, args @ ..] = &*words else { return false };
    let row = Row::named(command_name(head)).filter(|row| row.carrier == Carrier::Shell);
    !image.argv_truncated && row.is_some_and(|row| row.has_no_program(args))
}

/// Whether the program, or the script that it runs, is named like a debugger.
pub fn is_debugger(image: &Image) -> bool {
    let names =
        [without_deleted(&image.exe)].into_iter().chain(image.argv.iter().take(4).map(String::as_str));
    let parts = names.flat_map(|name| base(name).split(|c: char| !c.is_ascii_alphanumeric()));
    parts.map(str::to_ascii_lowercase).any(|part| DEBUGGERS.contains(&&*part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(line: &str) -> Image {
        let argv: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Image { exe: argv.first().cloned().unwrap_or_default(), argv, argv_truncated: false }
    }

    #[test]
    fn a_shell_that_waits_for_a_person() {
        for line in ["bash", "-bash", "/bin/zsh -l", "sh -i", "bash --init-file /x/y.sh", "bash --norc"] {
            assert!(is_shell_of_a_person(&image(line)), "{line}");
        }
        for line in
            ["bash -c x", "bash -lc x", "sh script.sh", "fish --command x", "python3", "", "bash -- script"]
        {
            assert!(!is_shell_of_a_person(&image(line)), "{line}");
        }
    }

    #[test]
    fn what_opens_something_for_a_person() {
        for line in ["xdg-open http://x", "/bin/sh /usr/bin/xdg-open /x.pdf", "gio open /x.odt"] {
            assert!(is_opener(&image(line)), "{line}");
        }
        for line in ["gio mount /x", "bash -c xdg-open", "open", "", "python3 xdg-open", "x xdg-open"] {
            assert!(!is_opener(&image(line)), "{line}");
        }
    }

    #[test]
    fn what_is_named_like_a_debugger() {
        for line in [
            "gdb -p 1",
            "/usr/bin/lldb-server gdbserver",
            "python3 /x/mcp-server-lldb",
            "npx -y gdb-mcp",
            "dlv",
        ] {
            assert!(is_debugger(&image(line)), "{line}");
        }
        for line in ["node server.js", "mcp-server-git", "python3 -m my_mcp_server", ""] {
            assert!(!is_debugger(&image(line)), "{line}");
        }
    }
}
