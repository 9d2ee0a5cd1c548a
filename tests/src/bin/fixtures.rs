//! Installs the published MCP servers and SDKs of the end-to-end tests; quick if they are installed. Prints
//! their paths as environment variables for a situation that is played by hand.

use anyhow::Result;
use tests::fixtures::Fixtures;

fn main() -> Result<()> {
    for (name, folder) in Fixtures::install()?.environment() {
        println!("export {name}={}", folder.display());
    }
    Ok(())
}
