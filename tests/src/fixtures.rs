//! Published MCP servers and SDKs, unmodified, installed from their registries into a cache folder of the
//! project. The folder of each part is named after the hash of its lock file, so that a changed lock file
//! leads to a new installation.

use std::{
    env,
    fs::{self, File},
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};

const NPM: [(&str, &str); 2] = [
    ("package.json", include_str!("../fixtures/package.json")),
    ("package-lock.json", include_str!("../fixtures/package-lock.json")),
];
const MCP2: [(&str, &str); 1] = [("requirements.txt", include_str!("../fixtures/python-mcp2.txt"))];
const MCP1: [(&str, &str); 1] = [("requirements.txt", include_str!("../fixtures/python-mcp1.txt"))];

/// A file in every complete folder. Without it, the installation was interrupted.
const STAMP: &str = ".complete";

/// The installed programs.
#[derive(Clone, Debug)]
pub struct Fixtures {
    /// The npm project: servers, the Node SDK, the server of playwright, supergateway, mcp-remote, Claude
    /// Code (241 MB of the 331 MB).
    pub npm: PathBuf,
    /// A virtual environment with the Python SDK 2, mcp-server-time, mcp-server-git and uv.
    pub python2: PathBuf,
    /// A virtual environment with the Python SDK 1.
    pub python1: PathBuf,
    uv: PathBuf,
}

impl Fixtures {
    /// The installed programs, or an error that says how to install them. Waits while they are being installed.
    pub fn open() -> Result<Self> {
        let this = Self::planned()?;
        this.lock()?.lock_shared().context("wait for the fixtures")?;
        for folder in [&this.npm, &this.python2, &this.python1, &this.uv] {
            let complete = folder.join(STAMP).exists();
            ensure!(complete, "{} is missing: run `cargo run -p tests --bin fixtures`", folder.display());
        }
        Ok(this)
    }

    /// Installs what is missing.
    pub fn install() -> Result<Self> {
        let this = Self::planned()?;
        let lock = this.lock()?;
        lock.lock().context("wait for another installation")?;
        once(&this.npm, &NPM, |at| {
            run(
                Command::new("npm").args([
                    "ci",
                    "--ignore-scripts",
                    "--no-audit",
                    "--no-fund",
                    "--loglevel=error",
                ]),
                at,
            )?;
            // As its installation script does: the native program replaces a stub, as a hard link.
            run(Command::new("node").arg("node_modules/@anthropic-ai/claude-code/install.cjs"), at)
        })?;
        for (at, files) in [(&this.python2, &MCP2), (&this.python1, &MCP1)] {
            once(at, files, python)?;
        }
        once(&this.uv, &MCP2, |at| this.warm_uv(at))?;
        chromium()?;
        Ok(this)
    }

    fn planned() -> Result<Self> {
        let package = Path::new(env!("CARGO_MANIFEST_DIR"));
        let project = package.parent().context("the package has no parent folder")?;
        let root = env::var_os("ORPHAND_FIXTURES").map_or(project.join(".cache/fixtures"), PathBuf::from);
        let named = |name: &str, files: &[(&str, &str)]| {
            let mut hasher = DefaultHasher::new();
            files.hash(&mut hasher);
            root.join(format!("{name}-{:016x}", hasher.finish()))
        };
        Ok(Self {
            npm: named("npm", &NPM),
            python2: named("mcp2", &MCP2),
            python1: named("mcp1", &MCP1),
            uv: named("uv", &MCP2),
        })
    }

    /// The file that is locked while they are installed.
    fn lock(&self) -> Result<File> {
        let folder = self.npm.parent().context("the fixtures have no folder")?;
        fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
        File::create(folder.join("lock")).context("make the lock of the fixtures")
    }

    /// An executable of the npm project.
    pub fn npm_bin(&self, name: &str) -> String {
        self.npm.join("node_modules/.bin").join(name).to_string_lossy().into_owned()
    }

    /// The main script of server-everything.
    pub fn everything(&self) -> String {
        let script = "node_modules/@modelcontextprotocol/server-everything/dist/index.js";
        self.npm.join(script).to_string_lossy().into_owned()
    }

    /// An executable of a virtual environment.
    pub fn venv_bin(venv: &Path, name: &str) -> String {
        venv.join("bin").join(name).to_string_lossy().into_owned()
    }

    /// The environment in which `uvx mcp-server-time` runs without a registry.
    pub fn uv_env(&self) -> [(&'static str, PathBuf); 2] {
        [("UV_CACHE_DIR", self.uv.join("cache")), ("UV_CONSTRAINT", self.uv.join("requirements.txt"))]
    }

    /// The environment of a situation, which contains all paths.
    pub fn environment(&self) -> Vec<(&'static str, PathBuf)> {
        let mut all = vec![
            ("ORPHAND_FIXTURES_CHROMIUM", PathBuf::from(CHROMIUM)),
            ("ORPHAND_FIXTURES_NPM", self.npm.clone()),
            ("ORPHAND_FIXTURES_PYTHON1", self.python1.clone()),
            ("ORPHAND_FIXTURES_PYTHON2", self.python2.clone()),
        ];
        all.extend(self.uv_env());
        all
    }

    fn warm_uv(&self, at: &Path) -> Result<()> {
        let mut uvx = Command::new(Self::venv_bin(&self.python2, "uvx"));
        run(
            uvx.envs(self.uv_env()).args(["mcp-server-time", "--help"]).stdout(std::process::Stdio::null()),
            at,
        )
    }
}

/// Fills the folder `at` with `files` and with what `make` adds, unless that has been done.
fn once(at: &Path, files: &[(&str, &str)], make: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    if at.join(STAMP).exists() {
        return Ok(());
    }
    if at.exists() {
        fs::remove_dir_all(at).with_context(|| format!("remove {}", at.display()))?;
    }
    eprintln!("fixtures: installing {}", at.display());
    fs::create_dir_all(at).with_context(|| format!("make {}", at.display()))?;
    for (name, text) in files {
        fs::write(at.join(name), text).with_context(|| format!("write {name}"))?;
    }
    make(at)?;
    fs::write(at.join(STAMP), "").context("write the stamp")
}

fn python(at: &Path) -> Result<()> {
    run(Command::new("python3").args(["-m", "venv", "."]), at)
        .context("Python's venv module is needed: apt-get install python3-venv")?;
    let pip = at.join("bin/pip");
    run(Command::new(pip).args(["install", "--quiet", "--no-deps", "--requirement", "requirements.txt"]), at)
}

/// Installs chromium for playwright's server. No registry has it.
fn chromium() -> Result<()> {
    if Path::new(CHROMIUM).exists() {
        return Ok(());
    }
    let here = Path::new("/");
    let apt = |args: &[&str]| {
        run(Command::new("apt-get").env("DEBIAN_FRONTEND", "noninteractive").args(args), here)
    };
    apt(&["update", "--quiet=2"])
        .and_then(|()| apt(&["install", "--quiet=2", "--yes", "--no-install-recommends", "chromium"]))
        .with_context(|| format!("install the package chromium: {CHROMIUM} is missing"))
}

/// Debian's chromium.
pub const CHROMIUM: &str = "/usr/bin/chromium";

fn run(command: &mut Command, at: &Path) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.current_dir(at).status().with_context(|| format!("run {name}: is it installed?"))?;
    if !status.success() {
        bail!("{command:?} ended with {status}");
    }
    Ok(())
}
