//! `PROGRAM --as ALIAS [--kib N]`: an MCP server that is next to nothing, so that a thousand fit. Copied under the name that a
//! rule knows, or does not. It tells its truth to `truth.sock` in the folder above its own, prints one line, and stays: it does
//! not even read its input, let alone its end. N KiB of its memory are its own.

use std::{env, hint::black_box, io::Write as _, thread};

use anyhow::{Context as _, Result};

fn main() -> Result<()> {
    let args: Vec<String> = env::args().collect();
    let option = |name: &str| args.iter().skip_while(|a| *a != name).nth(1);
    let kib = option("--kib").map_or(Ok(0), |n| n.parse::<usize>()).context("--kib")?;
    let ballast = black_box(vec![1u8; kib * 1024]);

    tests::tell("server", option("--as").map_or("", |alias| alias))?;

    // Whoever started it may have gone: then nobody reads this.
    let _ = writeln!(std::io::stdout(), r#"{{"jsonrpc":"2.0","method":"notifications/ready"}}"#);
    loop {
        thread::park();
        black_box(&ballast);
    }
}
