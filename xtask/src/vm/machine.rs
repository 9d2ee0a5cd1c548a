//! The virtual machine: QEMU, with KVM if available, otherwise emulated.

use std::{
    fs,
    io::Read as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use rustix::{
    fs::{Access, access},
    process::{Pid, Signal, kill_process},
};

use super::kernel::Kernel;
use crate::command;

const KVM: &str = "/dev/kvm";

/// How long a machine with KVM may take to the first word of its kernel, before it is emulated instead: it takes
/// half a second.
const FIRST_SIGN: Duration = Duration::from_secs(5);

/// The pause between two checks of a running machine.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// How long it may run, in seconds: emulated it takes a tenth of this at best, on a busy machine far more.
const LIMIT: &str = "300";

/// The status of timeout(1) when it ended its command.
const TIMED_OUT: i32 = 124;

/// Version 2 of cgroups only; no mitigations, which cost an emulated machine much; what systemd says goes to the
/// kernel's log, notices from there to the console: the first is the kernel's own version.
const CMDLINE: &str = "console=ttyS0 loglevel=6 panic=-1 mitigations=off cgroup_no_v1=all systemd.unified_cgroup_hierarchy=1 \
     systemd.unit=guest.target systemd.show_status=0 systemd.log_target=kmsg";

/// Boots `kernel` with the root file system `image` and waits until it has switched itself off; gives what was told
/// on the second serial line. The console is kept beside it.
pub fn run(dir: &Path, kernel: &Kernel, image: &Path) -> Result<String> {
    let machine = Machine { kernel, image, console: dir.join("console.log"), told: dir.join("told.log") };
    if access(KVM, Access::READ_OK | Access::WRITE_OK).is_ok() {
        match machine.boot(&["-accel", "kvm"], Some(FIRST_SIGN)) {
            Ok(()) => return machine.told(),
            // Some virtual machines offer a KVM in which nothing runs.
            Err(error) if !machine.has_console() => {
                command::say("vm", &format!("emulated, because {KVM} is of no use here: {error:#}"));
            }
            Err(error) => return Err(error),
        }
    }
    machine.boot(&["-accel", "tcg,thread=multi"], None)?;
    machine.told()
}

struct Machine<'a> {
    kernel: &'a Kernel,
    image: &'a Path,
    console: PathBuf,
    told: PathBuf,
}

impl Machine<'_> {
    /// Boots it and waits for its end; one that must give a sign of life and does not is ended.
    fn boot(&self, accelerator: &[&str], sign: Option<Duration>) -> Result<()> {
        for file in [&self.console, &self.told] {
            fs::write(file, "").with_context(|| format!("cannot write {}", file.display()))?;
        }
        let begun = Instant::now();
        let mut qemu = self.start(accelerator)?;
        let status = loop {
            if let Some(status) = qemu.try_wait().context("cannot wait for QEMU")? {
                break status;
            }
            if sign.is_some_and(|limit| begun.elapsed() > limit) && !self.has_console() {
                let pid =
                    i32::try_from(qemu.id()).ok().and_then(Pid::from_raw).context("QEMU has no number")?;
                // It is our child and not yet waited for: the number is its own. timeout(1) passes it on.
                kill_process(pid, Signal::TERM).context("cannot end QEMU")?;
                qemu.wait().context("cannot wait for QEMU")?;
                bail!("its guest does not start");
            }
            thread::sleep(LOOK_AGAIN);
        };
        if status.code() == Some(TIMED_OUT) {
            bail!("the guest did not end within {LIMIT} s; its console is {}", self.console.display());
        }
        if !status.success() {
            let mut said = String::new();
            if let Some(mut stderr) = qemu.stderr.take() {
                stderr.read_to_string(&mut said).context("cannot read what QEMU said")?;
            }
            bail!("QEMU failed: {status}: {}", said.trim().lines().last().unwrap_or_default());
        }
        Ok(())
    }

    fn start(&self, accelerator: &[&str]) -> Result<Child> {
        let serial = |file: &Path| format!("file:{}", file.display());
        // A guest that hangs, and one whose test was killed, is ended by timeout(1).
        Command::new("timeout")
            .args(["--foreground", "--kill-after=5", LIMIT, "qemu-system-x86_64"])
            .args(accelerator)
            .args(["-cpu", "max", "-m", "1G", "-smp", "2"])
            .args(["-nodefaults", "-display", "none", "-no-reboot", "-append", CMDLINE])
            .args(["-serial", &serial(&self.console), "-serial", &serial(&self.told)])
            .arg("-kernel")
            .arg(&self.kernel.image)
            .arg("-initrd")
            .arg(self.image)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot start timeout qemu-system-x86_64")
    }

    fn has_console(&self) -> bool {
        fs::metadata(&self.console).is_ok_and(|file| file.len() > 0)
    }

    fn told(&self) -> Result<String> {
        let bytes = fs::read(&self.told).with_context(|| format!("cannot read {}", self.told.display()))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}
