//! Where the kernel keeps what the hook on connections reads. A kernel may lack it (`CONFIG_IPV6=n`): then who called is known for a minute
//! only.

use monitor_common::CallOffsets;

use super::{LayoutError, Names};

/// The types that are looked for; [`super::ends`] has the others.
pub(super) const STRUCTS: [&str; 1] = ["inet_sock"];
pub(super) const TYPEDEF: &str = "btf_trace_inet_sock_set_state";

/// The offsets of the kernel whose types these are.
pub(super) fn offsets(kernel: &Names<'_>) -> Result<CallOffsets, LayoutError> {
    kernel.tracepoint("inet_sock_set_state", TYPEDEF, 3)?;
    let (common, _) = kernel.field("sock", "__sk_common")?;
    let field = |name, size| {
        let offset = kernel.offset("sock_common", name, size)?;
        common.checked_add(offset).ok_or(LayoutError::NoField("sock_common", name))
    };
    Ok(CallOffsets {
        sock_family: field("skc_family", 2)?,
        sock_far: field("skc_daddr", 4)?,
        sock_near: field("skc_rcv_saddr", 4)?,
        sock_far6: field("skc_v6_daddr", 16)?,
        sock_near6: field("skc_v6_rcv_saddr", 16)?,
        sock_far_port: field("skc_dport", 2)?,
        sock_near_port: kernel.offset("inet_sock", "inet_sport", 2)?,
    })
}
