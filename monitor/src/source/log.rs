//! What the eBPF programs log (aya-log), handed to this program's own log. For looking for errors in the programs; off unless
//! asked for.

use aya::Ebpf;
use aya_log::EbpfLogger;
use log::{Log, Metadata, Record};

use super::kernel_error::KernelError;

pub type Reader = EbpfLogger<ToTracing>;

pub fn open(programs: &mut Ebpf) -> Result<Reader, KernelError> {
    EbpfLogger::init_with_logger(programs, ToTracing).map_err(|_| KernelError::no_object("AYA_LOGS"))
}

/// A sink of `log` that hands on to `tracing`.
#[derive(Clone, Copy, Debug)]
pub struct ToTracing;

impl Log for ToTracing {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        tracing::debug!(target: "orphand::kernel", "{}", record.args());
    }

    fn flush(&self) {}
}
