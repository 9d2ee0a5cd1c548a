//! Tables in Markdown, and the statistics that they need.

use std::fmt;

/// A table: a title, a head, rows of as many cells.
#[derive(Debug)]
pub struct Table {
    title: String,
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new(title: &str, head: &[&str]) -> Self {
        Self { title: title.to_owned(), head: head.iter().map(|&s| s.to_owned()).collect(), rows: Vec::new() }
    }

    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n\n| {} |", self.title, self.head.join(" | "))?;
        writeln!(f, "|{}", "---|".repeat(self.head.len()))?;
        self.rows.iter().try_for_each(|row| writeln!(f, "| {} |", row.join(" | ")))
    }
}

/// The value at this share (0.0 to 1.0) of the sorted values, by nearest rank; 0 of none.
pub fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rank among far fewer than 2^52 values"
    )]
    let rank = (share * sorted.len() as f64).ceil().max(1.0) as usize;
    sorted.get(rank - 1).or(sorted.last()).copied().unwrap_or(0.0)
}

/// The median; of an even number of values the lower one.
pub fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_were_measured() {
        let values = [4.0, 1.0, 3.0, 2.0, 5.0];
        let all = [0.0, 0.5, 0.99, 1.0].map(|share| quantile(&values, share).to_bits());
        assert_eq!(all, [1.0, 3.0, 5.0, 5.0].map(f64::to_bits));
        assert_eq!(median(&[]).to_bits(), 0.0_f64.to_bits());
    }

    #[test]
    fn a_table_is_markdown() {
        let mut table = Table::new("Title", &["a", "b"]);
        table.row(["1".into(), "2".into()]);
        assert_eq!(table.to_string(), "Title\n\n| a | b |\n|---|---|\n| 1 | 2 |\n");
    }
}
