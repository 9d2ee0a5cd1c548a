//! Installs the published MCP servers and SDKs that the end-to-end tests run; quick when they are there.

use anyhow::Result;
use tests::fixtures::Fixtures;

fn main() -> Result<()> {
    let fixtures = Fixtures::install()?;
    println!("{}\n{}\n{}", fixtures.npm.display(), fixtures.python2.display(), fixtures.python1.display());
    Ok(())
}
