//! Every family of metrics: what is exported, and what the documentation says of it.
//!
//! Names and labels are a contract with users. The tests hold a whole scrape to this table.

use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// It only grows. Its samples end in `_total`.
    Counter,
    Gauge,
    Histogram,
    /// It names something in its labels. Its sample ends in `_info`.
    Info,
}

#[derive(Debug)]
pub struct Family {
    pub name: &'static str,
    pub kind: Kind,
    pub labels: &'static [&'static str],
    /// What it tells, with unit: one sentence.
    pub help: &'static str,
}

macro_rules! families {
    ($($constant:ident = $name:literal, $kind:ident, [$($label:literal),*], $help:literal;)*) => {
        $(pub(super) const $constant: Family =
            Family { name: $name, kind: Kind::$kind, labels: &[$($label),*], help: $help };)*
        pub const ALL: &[Family] = &[$($constant),*];
    };
}

families! {
    WATCHING = "orphand_watching", Gauge, [], "1 while orphand can vouch for what it says, 0 when blind.";
    MODE = "orphand_mode", Gauge, ["mode"],
        "1 for the mode in effect: enforce, or observe, which is also that of a pause; 0 for the other.";
    ORPHANS = "orphand_orphans", Gauge, ["agent", "unit", "manager", "uid", "generation", "class"],
        "Orphans alive, spared ones included.";
    ORPHAN_PROCESSES = "orphand_orphan_processes", Gauge, ["agent", "unit", "manager", "uid", "generation", "class"],
        "Processes of orphans alive.";
    ORPHAN_BYTES = "orphand_orphan_resident_memory_bytes", Gauge,
        ["agent", "unit", "manager", "uid", "generation", "class"], "Resident memory of orphans alive.";
    SERVERS = "orphand_servers", Gauge, ["agent", "unit", "manager", "uid", "generation"], "MCP servers alive.";
    SERVER_BYTES = "orphand_server_resident_memory_bytes", Gauge, ["agent", "unit", "manager", "uid", "generation"],
        "Resident memory of MCP servers alive.";
    AGENT_GENERATION = "orphand_agent_generation", Gauge, ["agent", "unit", "manager", "uid"],
        "The number of the agent's latest run.";
    GENERATION_START = "orphand_generation_start_time_seconds", Gauge,
        ["agent", "unit", "manager", "uid", "generation"], "When the run began, seconds since 1970.";
    SPARED = "orphand_spared", Gauge, ["guard"], "Orphans that stay, by the guard that protects them.";
    UNPROVEN = "orphand_unproven", Gauge, ["agent", "unit", "manager", "uid", "doubt"],
        "Servers that were left behind and that somebody may still use, by what keeps them from being orphans.";
    LEFTOVERS = "orphand_leftovers", Gauge, ["agent", "unit", "manager", "uid", "generation"],
        "Branches of processes that ended agents left and that are no servers.";
    LEFTOVER_BYTES = "orphand_leftover_resident_memory_bytes", Gauge,
        ["agent", "unit", "manager", "uid", "generation"], "Resident memory of leftovers.";
    DUPLICATE_SERVERS = "orphand_duplicate_servers", Gauge, ["agent", "unit", "manager", "uid"],
        "Servers of which their living owner has a newer one with the same identity.";
    ORPHANS_DETECTED = "orphand_orphans_detected", Counter,
        ["agent", "unit", "manager", "uid", "class", "evidence"], "Orphans detected, once for each kind of evidence.";
    REAPED = "orphand_reaped", Counter, ["agent", "unit", "manager", "uid", "class", "signal"],
        "Servers ended: orphans, and what a person had ended; by the last signal that was needed.";
    RECLAIMED_BYTES = "orphand_reclaimed_bytes", Counter, ["agent", "unit", "manager", "uid", "class"],
        "Resident memory that orphans had before they were ended.";
    ORPHAN_CPU = "orphand_orphan_cpu_seconds", Counter, ["agent", "unit", "manager", "uid"],
        "CPU time that orphans have used since they were detected.";
    RECOGNISED = "orphand_servers_recognised", Counter, ["by"],
        "MCP servers recognised, by what showed it first: name, arguments, protocol or config.";
    REAP_FAILURES = "orphand_reap_failures", Counter, ["reason"], "Orphans that could not be ended, by the first error.";
    DETECTION_LATENCY = "orphand_detection_latency_seconds", Histogram, [],
        "From the owner's exit to the verdict, less the grace.";
    LINEAGE_PROCESSES = "orphand_lineage_processes", Gauge, [], "Processes in the lineage graph.";
    KERNEL_RECORDS = "orphand_kernel_records", Counter, ["kind"], "Records received from the kernel.";
    KERNEL_RECORDS_LOST = "orphand_kernel_records_lost", Counter, ["kind"], "Records lost in the kernel.";
    KERNEL_ERRORS = "orphand_kernel_errors", Counter, ["kind"], "Errors in the eBPF programs, by kind.";
    RESYNCS = "orphand_resyncs", Counter, [], "Repairs of the lineage graph from /proc.";
    SINK_DROPPED = "orphand_sink_dropped", Counter, ["sink"], "Events dropped before they reached their reader.";
    SESSIONS = "orphand_sessions", Gauge, ["state"], "Sessions that living servers were started for, by state; only with [sessions].";
    REGISTRY_ERRORS = "orphand_session_registry_errors", Counter, ["kind"],
        "Rounds of questions to the session registry that failed, by kind.";
    HOOK_RUNS = "orphand_hook_runs", Counter, ["outcome"], "Runs of the alert hook, by outcome.";
    BUILD = "orphand_build", Info, ["version"], "The version of the running orphand.";
}
