//! What the name of a process says: for every exec on the host, so without a loop.

use crate::COMM_LEN;

const fn in_every_byte(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

/// Whether one byte is zero.
const fn has_zero_byte(bytes: u64) -> bool {
    bytes.wrapping_sub(in_every_byte(0x01)) & !bytes & in_every_byte(0x80) != 0
}

/// Whether `mcp` is in the name, in upper or lower case.
pub fn contains_mcp(comm: &[u8; COMM_LEN]) -> bool {
    // The two cases of an ASCII letter differ in this bit.
    let lower = u128::from_le_bytes(*comm) | u128::from_ne_bytes([0x20; COMM_LEN]);
    // Where the name has the three letters in sequence, all three differences are zero.
    let difference = |from: u32| {
        let [first, second, third] = [0, 8, 16].map(|bits| half(lower, from + bits));
        (first ^ in_every_byte(b'm')) | (second ^ in_every_byte(b'c')) | (third ^ in_every_byte(b'p'))
    };
    has_zero_byte(difference(0)) || has_zero_byte(difference(64))
}

/// Whether a name that begins with these bytes, in the order of memory, is that of a shell: they make the pipes of pipelines.
/// What is behind a name's NUL does not count: older kernels leave there what was there before.
pub const fn is_shell(start: u64) -> bool {
    let three = start & u64::from_ne_bytes(*b"\xff\xff\xff\0\0\0\0\0");
    let four = start & u64::from_ne_bytes(*b"\xff\xff\xff\xff\0\0\0\0");
    let five = start & u64::from_ne_bytes(*b"\xff\xff\xff\xff\xff\0\0\0");
    three == u64::from_ne_bytes(*b"sh\0\0\0\0\0\0")
        || four == u64::from_ne_bytes(*b"ash\0\0\0\0\0")
        || four == u64::from_ne_bytes(*b"csh\0\0\0\0\0")
        || four == u64::from_ne_bytes(*b"ksh\0\0\0\0\0")
        || four == u64::from_ne_bytes(*b"zsh\0\0\0\0\0")
        || five == u64::from_ne_bytes(*b"bash\0\0\0\0")
        || five == u64::from_ne_bytes(*b"dash\0\0\0\0")
        || five == u64::from_ne_bytes(*b"fish\0\0\0\0")
        || start == u64::from_ne_bytes(*b"busybox\0")
}

/// Eight bytes from this bit on; zeros after the end.
#[expect(clippy::cast_possible_truncation, reason = "the lower half of what was shifted")]
const fn half(bytes: u128, from: u32) -> u64 {
    (bytes >> from) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comm(name: &[u8]) -> [u8; COMM_LEN] {
        let mut comm = [0; COMM_LEN];
        comm[..name.len()].copy_from_slice(name);
        comm
    }

    #[test]
    fn at_every_place_and_in_every_case() {
        for (letters, expected) in
            [(b"mcp", true), (b"McP", true), (b"MCP", true), (b"mcq", false), (b"mCc", false)]
        {
            for from in 0..=COMM_LEN - 3 {
                for around in [0, b'-', b'm', b'p', 0x80, 0xff] {
                    let mut name = [around; COMM_LEN];
                    name[from..from + 3].copy_from_slice(letters);
                    assert_eq!(contains_mcp(&name), expected, "{name:?}");
                }
            }
        }
    }

    #[test]
    fn what_only_resembles_it_does_not_count() {
        for name in ["", "node", "mc", "m-c-p", "mccp", "mmcc", "cp", "pcm", "mc\0p"] {
            assert!(!contains_mcp(&comm(name.as_bytes())), "{name:?}");
        }
        // Cut by the kernel: the last letter is not there.
        assert!(!contains_mcp(&comm(b"a-server-for-mc")));
    }

    #[test]
    fn shells() {
        let start = |name: &[u8]| u64::from_ne_bytes(name[..8].try_into().unwrap());
        for shell in ["sh", "ash", "csh", "ksh", "zsh", "bash", "dash", "fish", "busybox"] {
            assert!(is_shell(start(&comm(shell.as_bytes()))), "{shell}");
            let mut left = comm(b"aaaaaaaaaaaaaaa");
            left[..shell.len()].copy_from_slice(shell.as_bytes());
            left[shell.len()] = 0;
            assert!(is_shell(start(&left)), "{shell}, then what another name left");
        }
        for other in
            ["", "s", "h", "ssh", "shx", "bashx", "bas", "node", "python3", "busyboxx", "fishy", "hs"]
        {
            assert!(!is_shell(start(&comm(other.as_bytes()))), "{other}");
        }
    }

    #[test]
    fn agrees_with_a_search() {
        let mut seed = 1_u64;
        let (mut with, mut without) = (0, 0);
        for _ in 0..100_000 {
            let name = [(); COMM_LEN].map(|()| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                b"mcpMCP-\0"[(seed >> 61) as usize]
            });
            let found = name.windows(3).any(|three| three.eq_ignore_ascii_case(b"mcp"));
            assert_eq!(contains_mcp(&name), found, "{name:?}");
            *if found { &mut with } else { &mut without } += 1;
        }
        assert!(with > 1_000 && without > 1_000, "{with} with, {without} without");
    }
}
