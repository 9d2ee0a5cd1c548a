//! `PROGRAM --as ALIAS [--kib N]`: an MCP server that is next to nothing, so that a thousand fit. Copied under the name that a
//! rule knows, or does not. It tells its truth to `truth.sock` in the folder above its own, prints one line, and stays: it does
//! not even read its input, let alone its end. N KiB of its memory are its own.

use std::{
    env, fs,
    hint::black_box,
    io::{Read as _, Write as _},
    os::unix::net::UnixStream,
    path::Path,
    process, thread,
};

use anyhow::{Context as _, Result};
use serde_json::json;

fn main() -> Result<()> {
    let args: Vec<String> = env::args().collect();
    let option = |name: &str| args.iter().skip_while(|a| *a != name).nth(1);
    let kib = option("--kib").map_or(Ok(0), |n| n.parse::<usize>()).context("--kib")?;
    let ballast = black_box(vec![1u8; kib * 1024]);

    let program = Path::new(args.first().context("no argv[0]")?);
    let stat = fs::read_to_string("/proc/self/stat").context("read /proc/self/stat")?;
    let fields = stat.rsplit_once(')').context("stat(5)")?.1;
    let birth: u64 = fields.split_ascii_whitespace().nth(19).context("stat(5)")?.parse()?;
    let scene = program.ancestors().nth(2).context("it lies in no scene")?;
    let mut line = UnixStream::connect(scene.join("truth.sock")).context("connect truth.sock")?;
    let told = json!({
        "role": "server", "name": program.file_name().map(|n| n.to_string_lossy()), "as": option("--as"),
        "pid": process::id(), "start": birth, "invocation": env::var("INVOCATION_ID").unwrap_or_default(),
    });
    line.write_all(format!("{told}\n").as_bytes()).context("tell")?;
    line.read_exact(&mut [0]).context("nobody listens")?;
    drop(line);

    // Whoever started it may have gone: then nobody reads this.
    let _ = writeln!(std::io::stdout(), r#"{{"jsonrpc":"2.0","method":"notifications/ready"}}"#);
    loop {
        thread::park();
        black_box(&ballast);
    }
}
