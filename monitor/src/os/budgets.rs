//! Time that is spent on each user's behalf: whoever makes the daemon work, or wait, more than his share waits himself.
//!
//! Invariant: what was spent on a user is forgotten at a fixed part of the time that passes, and nothing more is begun
//! for him as long as more than the allowance is remembered. So in any span of time no more is spent on him than the
//! allowance, that part of the span, and one piece of work; where there is one for all together, likewise. To wait
//! ends nothing.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use orphand_core::model::Share;

#[derive(Clone, Copy, Debug)]
pub struct Budget {
    pub allowance: Duration,
    /// One of so many parts of the time that passes.
    pub part: u32,
}

/// The budgets of users for one kind of work, and what they have spent.
#[derive(Debug)]
pub struct Budgets {
    user: Budget,
    all: Option<Budget>,
    spent: BTreeMap<Share, Account>,
    total: Account,
}

#[derive(Clone, Copy, Debug)]
pub struct Account {
    spent: Duration,
    at: Instant,
}

impl Account {
    pub const fn new(at: Instant) -> Self {
        Self { spent: Duration::ZERO, at }
    }

    /// What is remembered of it now.
    pub fn left_at(self, now: Instant, budget: Budget) -> Duration {
        self.spent.saturating_sub(now.saturating_duration_since(self.at) / budget.part)
    }

    pub fn charge(&mut self, now: Instant, budget: Budget, cost: Duration) {
        *self = Self { spent: self.left_at(now, budget).saturating_add(cost), at: now };
    }

    /// How long it takes until something may be spent again.
    pub fn waits(self, now: Instant, budget: Budget) -> Duration {
        self.left_at(now, budget).saturating_sub(budget.allowance).saturating_mul(budget.part)
    }
}

impl Budgets {
    pub fn new(user: Budget, all: Option<Budget>) -> Self {
        Self { user, all, spent: BTreeMap::new(), total: Account::new(Instant::now()) }
    }

    /// How long work for this user has to wait; zero if it may begin.
    pub fn waits(&self, user: Share, now: Instant) -> Duration {
        let own = self.spent.get(&user).map_or(Duration::ZERO, |own| own.waits(now, self.user));
        own.max(self.all.map_or(Duration::ZERO, |all| self.total.waits(now, all)))
    }

    /// What is remembered of what was spent on this user.
    pub fn spent(&self, user: Share, now: Instant) -> Duration {
        self.spent.get(&user).map_or(Duration::ZERO, |own| own.left_at(now, self.user))
    }

    /// So much was spent on this user. Root is not charged: it needs no such way to stop the daemon, and services run most agents as it.
    pub fn charge(&mut self, user: Share, now: Instant, cost: Duration) {
        if user == Share::of(0) {
            return;
        }
        let budget = self.user;
        self.spent.retain(|_, account| !account.left_at(now, budget).is_zero());
        self.spent.entry(user).or_insert(Account::new(now)).charge(now, budget, cost);
        if let Some(all) = self.all {
            self.total.charge(now, all, cost);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// How much of this time is spent by these users in turn, each of whom always has work of this cost.
    fn spent(users: &[u32], budgets: &mut Budgets, cost: Duration, time: Duration) -> Vec<Duration> {
        let begin = Instant::now();
        let mut spent = vec![Duration::ZERO; users.len()];
        let mut passed = Duration::ZERO;
        while passed < time {
            for (user, spent) in users.iter().zip(&mut spent) {
                if budgets.waits(Share::of(*user), begin + passed).is_zero() {
                    budgets.charge(Share::of(*user), begin + passed, cost);
                    *spent += cost;
                }
            }
            passed += SECOND / 10;
        }
        spent
    }

    #[test]
    fn nobody_has_more_than_his_allowance_and_his_part() {
        for cost in [20, 100, 3_000] {
            let cost = Duration::from_millis(cost);
            let mut budgets = Budgets::new(Budget { allowance: SECOND, part: 100 }, None);
            let all = spent(&[1000], &mut budgets, cost, SECOND * 1000);
            let most = SECOND * 11 + cost;
            assert!(all[0] <= most && all[0] + cost * 2 >= most, "{all:?} of {most:?}");
        }
    }

    #[test]
    fn one_user_takes_nothing_from_another() {
        let user = Budget { allowance: SECOND, part: 100 };
        let mut budgets = Budgets::new(user, None);
        let now = Instant::now();
        let [one, other] = [1000, 1001].map(Share::of);
        budgets.charge(one, now, SECOND * 2);
        assert_eq!(budgets.waits(one, now), SECOND * 100);
        assert_eq!(budgets.waits(other, now), Duration::ZERO);
        assert_eq!(budgets.waits(one, now + SECOND * 100), Duration::ZERO);
        budgets.charge(other, now + SECOND * 200, SECOND);
        assert_eq!(budgets.spent.len(), 1, "what is forgotten takes no room");
    }

    #[test]
    fn all_together_have_no_more_than_theirs() {
        let (user, all) =
            (Budget { allowance: SECOND, part: 100 }, Budget { allowance: SECOND * 5, part: 20 });
        let users: Vec<u32> = (1000..1100).collect();
        let mut budgets = Budgets::new(user, Some(all));
        let sum: Duration = spent(&users, &mut budgets, SECOND / 100, SECOND * 200).iter().sum();
        assert!(sum <= SECOND * 16 && sum > SECOND * 14, "{sum:?}");
    }
}
