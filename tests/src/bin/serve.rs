//! `PROGRAM --as ALIAS [--kib N]`: a tiny MCP server, of which a thousand fit on a host. It is copied under a
//! name that a rule recognises, or does not. It reports itself to `truth.sock` in the folder above its own,
//! prints one line, and stays: it never reads its input and does not notice its end. It uses N KiB of memory
//! of its own.

use std::{env, hint::black_box, io::Write as _, thread};

use anyhow::{Context as _, Result};

fn main() -> Result<()> {
    let args: Vec<String> = env::args().collect();
    let option = |name: &str| args.iter().skip_while(|a| *a != name).nth(1);
    let kib = option("--kib").map_or(Ok(0), |n| n.parse::<usize>()).context("--kib")?;
    let ballast = black_box(vec![1u8; kib * 1024]);

    tests::report_self("server", option("--as").map_or("", |alias| alias))?;

    // If its creator is gone, nobody reads this.
    let _ = writeln!(std::io::stdout(), r#"{{"jsonrpc":"2.0","method":"notifications/ready"}}"#);
    loop {
        thread::park();
        black_box(&ballast);
    }
}
