//! Python's fork servers (`multiprocessing`, its default on Linux from Python 3.14 on). A program that starts its workers
//! through one calls it by short connections to a named unix socket, which leave no trace of who called.
//!
//! The name is random, in a private directory, and only the program and its workers know it. Each of these has the write
//! end of a pipe that the fork server reads (the fork server ends with the last of them), and hands it over with every
//! call. So whoever has that end is who may use the fork server, instead of whoever may have connected.

use crate::model::Image;

/// The descriptor of the listener of a fork server; `None` if this program is none.
pub fn fork_server_listener(image: &Image) -> Option<u32> {
    const PROGRAM: &str = "from multiprocessing.forkserver import main; main(";
    let at = image.argv.iter().position(|argument| argument == "-c")?;
    let mut numbers = image.argv.get(at + 1)?.strip_prefix(PROGRAM)?.split(", ").map(str::parse);
    // The second one is that of the pipe.
    let (listener, pipe) = (numbers.next()?.ok()?, numbers.next()?);
    pipe.ok().map(|_| listener).filter(|pipe: &u32| *pipe > 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_says_which_descriptor() {
        let image = |argv: &[&str]| Image {
            argv: argv.iter().map(|&argument| argument.to_owned()).collect(),
            ..Image::default()
        };
        for (code, number) in [
            ("from multiprocessing.forkserver import main; main(5, 6, ['__main__'], **{})", Some(5)),
            ("from multiprocessing.forkserver import main; main(17, 20, [], **{'a': 1})", Some(17)),
            ("from multiprocessing.forkserver import main; main(x, 6, [])", None),
            ("from multiprocessing.forkserver import main; main(5", None),
            ("print('from multiprocessing.forkserver import main; main(5, 6, [])')", None),
        ] {
            assert_eq!(
                fork_server_listener(&image(&["/usr/bin/python3", "-I", "-c", code])),
                number,
                "{code}"
            );
        }
        assert_eq!(fork_server_listener(&image(&["python3", "-c"])), None);
        assert_eq!(fork_server_listener(&image(&["python3", "server.py"])), None);
    }
}
