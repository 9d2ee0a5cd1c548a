//! What was there during the last minutes, for the line of bars in the head. Pure.

use std::{collections::VecDeque, time::Duration};

use crate::sink::list::Sample;
use orphand_core::model::{BootTime, State, text};

const STEP: Duration = Duration::from_secs(2);

/// How many points are kept: five minutes.
const POINTS: usize = 150;

/// The memory of servers that lost their owner, a point each [`STEP`].
#[derive(Debug, Default)]
pub struct Past {
    pub bytes: VecDeque<u64>,
    latest: BootTime,
}

impl Past {
    /// Adds what a look at the host found: within the step of the latest point, the larger of both.
    pub fn add(&mut self, sample: &Sample) {
        let left = sample.report.servers().filter(|(_, server)| server.state != State::Live);
        let bytes = left.filter_map(|(_, server)| server.server.rss_bytes).fold(0, u64::saturating_add);
        match self.bytes.back_mut() {
            Some(last) if sample.now.since(self.latest) < STEP => *last = bytes.max(*last),
            _ => {
                if self.bytes.len() == POINTS {
                    self.bytes.pop_front();
                }
                self.bytes.push_back(bytes);
                self.latest = sample.now;
            }
        }
    }

    /// How long ago the oldest point was, in words.
    pub fn span(&self) -> String {
        text::duration(STEP * u32::try_from(self.bytes.len()).unwrap_or(u32::MAX))
    }
}
