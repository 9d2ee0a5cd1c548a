//! Installs the published MCP servers and SDKs that the end-to-end tests run; quick when they are there. Prints where they are, as a
//! situation that is played by hand wants it in its environment.

use anyhow::Result;
use tests::fixtures::Fixtures;

fn main() -> Result<()> {
    for (name, folder) in Fixtures::install()?.environment() {
        println!("export {name}={}", folder.display());
    }
    Ok(())
}
