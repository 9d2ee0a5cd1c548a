//! Which of several containers of one image is that of a client that has not named it. Pure.
//!
//! Its engine does not tell. But a container is never made before its client was started, and each client that lives has
//! one. So of two clients that were started one after the other, the container that was made in between is that of the
//! first one, and then the other container is that of the second. Invariant: a container is a client's only if there is
//! no other way to give one to each.

use super::container::started_container;
use crate::model::{MadeContainer, OtherClient, ProcessId};

/// How much the time of the engine and that of the kernel may differ, in clock ticks: 0.5 s.
const SLACK: u64 = 50;
/// The clock ticks from the start of a client to the creation of its container: 10 s. An image that has to be fetched
/// first takes longer: then the container is not found.
const CREATION: u64 = 1000;
/// Clients that were started within this time of each other may have each other's containers, in clock ticks.
const AT_ABOUT: u64 = 2 * CREATION;

/// The container among `made`, which are all of this image, that this client has started; `None` if that is not certain.
pub fn own_container<'m>(
    client: ProcessId,
    image: &str,
    others: &[OtherClient],
    made: &'m [MadeContainer],
) -> Option<&'m MadeContainer> {
    let mut rivals = Vec::new();
    let mut named = Vec::new();
    for other in others {
        let Some(started) = started_container(&other.image) else { continue };
        if !started.image.as_deref().is_some_and(|other| is_same_image(other, image)) {
            continue;
        }
        match (started.id, started.name) {
            (None, None) => rivals.push(other.process.start),
            (id, name) => named.push(id.or(name)),
        }
    }
    let is_free = |one: &&MadeContainer| {
        !named.iter().flatten().any(|name| *name == one.name || one.id.starts_with(name.as_str()))
    };
    let made: Vec<&MadeContainer> = made.iter().filter(is_free).collect();
    let in_time = |one: &MadeContainer| {
        may_be_of(client.start, one) && one.created <= client.start.saturating_add(CREATION + SLACK)
    };
    let found = if rivals.iter().any(|rival| rival.abs_diff(client.start) <= AT_ABOUT) {
        only_one(client.start, rivals, &made)?
    } else {
        let mut candidates = made.into_iter().filter(|one| in_time(one));
        let found = candidates.next()?;
        candidates.next().is_none().then_some(found)?
    };
    in_time(found).then_some(found)
}

/// The one container that a client gets in every way to give one to it and one to each of its rivals, all of whom are
/// known by the time of their start.
fn only_one<'m>(own: u64, mut rivals: Vec<u64>, made: &[&'m MadeContainer]) -> Option<&'m MadeContainer> {
    // The later a client was started, the fewer containers it may have, and earlier ones may have all of those. So there
    // is a way if, from the last client on, each finds as many as there are clients so far.
    rivals.sort_unstable_by(|one, other| other.cmp(one));
    let leaves_enough = |taken: &MadeContainer| {
        rivals.iter().enumerate().all(|(before, rival)| {
            let left = made.iter().filter(|one| one.id != taken.id && may_be_of(*rival, one));
            left.count() > before
        })
    };
    let mut ways = made.iter().filter(|one| may_be_of(own, one) && leaves_enough(one));
    let found = ways.next()?;
    ways.next().is_none().then_some(*found)
}

const fn may_be_of(start: u64, one: &MadeContainer) -> bool {
    one.created.saturating_add(SLACK) >= start
}

/// Whether two names are of one image: an engine adds to the name that it was given.
pub fn is_same_image(one: &str, other: &str) -> bool {
    plain(one) == plain(other)
}

fn plain(image: &str) -> &str {
    let image = image.strip_suffix(":latest").unwrap_or(image);
    let prefixes = ["docker.io/library/", "docker.io/", "localhost/"];
    prefixes.iter().find_map(|prefix| image.strip_prefix(prefix)).unwrap_or(image)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::Image;

    const BARE: &str = "docker run -i --rm mcp/x";

    fn other(start: u64, line: &str) -> OtherClient {
        let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let image = Image { exe: "/usr/bin/docker".to_owned(), argv, argv_truncated: false };
        OtherClient { process: ProcessId::new(7, start), image }
    }

    fn made(created: &[u64]) -> Vec<MadeContainer> {
        let one = |(number, created): (usize, &u64)| MadeContainer {
            id: format!("{number:064}"),
            name: format!("name{number}"),
            created: *created,
        };
        created.iter().enumerate().map(one).collect()
    }

    /// The time at which that container was made that a client of this start has, beside these.
    fn own(start: u64, others: &[OtherClient], created: &[u64]) -> Option<u64> {
        let made = made(created);
        own_container(ProcessId::new(5, start), "mcp/x", others, &made).map(|found| found.created)
    }

    #[test]
    fn one_after_the_other() {
        for apart in [200, 1300] {
            let (first, second) = (10_000, 10_000 + apart);
            let created = [first + 30, second + 30];
            assert_eq!(own(first, &[other(second, BARE)], &created), Some(first + 30), "{apart}");
            assert_eq!(own(second, &[other(first, BARE)], &created), Some(second + 30), "{apart}");
        }
    }

    #[test]
    fn what_may_be_the_other_way_round_is_nobodys() {
        // Within a tenth of a second.
        assert_eq!(own(10_000, &[other(10_010, BARE)], &[10_030, 10_040]), None);
        // The first one took until after the start of the second.
        assert_eq!(own(10_000, &[other(10_200, BARE)], &[10_260, 10_300]), None);
        assert_eq!(own(10_200, &[other(10_000, BARE)], &[10_260, 10_300]), None);
        // The second one has none yet: what is there may be its own.
        assert_eq!(own(10_000, &[other(10_200, BARE)], &[10_260]), None);
        assert_eq!(own(10_200, &[other(10_000, BARE)], &[10_260]), None);
        // One that nobody has who lives.
        assert_eq!(own(10_000, &[other(10_200, BARE)], &[10_030, 10_230, 10_240]), None);
        // Hours before, and seconds after the last one.
        assert_eq!(own(10_000, &[], &[100, 10_040]), Some(10_040));
        assert_eq!(own(10_000, &[], &[10_040, 10_400]), None);
        assert_eq!(own(10_000, &[], &[10_040, 12_000]), Some(10_040));
        assert_eq!(own(10_000, &[], &[12_000]), None);
    }

    #[test]
    fn who_is_no_rival() {
        let created = [10_030, 10_040];
        for line in ["docker run -i mcp/time", "docker run mcp/x", "docker exec -i name1 sh", "docker ps"] {
            assert_eq!(own(10_000, &[other(10_010, line)], &created), None, "{line}");
            assert_eq!(own(10_000, &[other(10_010, line)], &created[..1]), Some(10_030), "{line}");
        }
        // It has named its own.
        let named = other(10_010, "docker run -i --name name1 docker.io/mcp/x:latest");
        assert_eq!(own(10_000, &[named], &created), Some(10_030));
    }

    proptest! {
        /// Whatever each client and its engine took: what is told is true, if each has one.
        #[test]
        fn what_is_told_is_so(times in proptest::collection::vec((0u64..3000, 0u64..900), 1..8), which in any::<prop::sample::Index>()) {
            let clients: Vec<u64> = times.iter().map(|(start, _)| 10_000 + start).collect();
            let created: Vec<u64> = times.iter().map(|(start, took)| 10_000 + start + took).collect();
            let which = which.index(times.len());
            let others: Vec<OtherClient> =
                clients.iter().enumerate().filter(|(at, _)| *at != which).map(|(_, start)| other(*start, BARE)).collect();
            let made = made(&created);
            let found = own_container(ProcessId::new(5, clients[which]), "mcp/x", &others, &made);
            if let Some(found) = found.filter(|_| others.iter().any(|one| one.process.start.abs_diff(clients[which]) <= AT_ABOUT)) {
                prop_assert_eq!(&found.id, &made[which].id);
            }
        }
    }
}
