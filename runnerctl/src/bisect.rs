//! Searches for the state of a branch that broke a command: tracks what is known of each state, and picks the next one
//! to try.
//!
//! Pure. States with identical files have the same result; the state searched for is the last bad one whose predecessor
//! is good.

use protocol::bisect::BisectPoint;

/// Exit code with which `git bisect run` skips a commit.
const SKIP_CODE: i32 = 125;
/// From this exit code on, the result says nothing about the files.
const FIRST_FATAL_CODE: i32 = 128;

/// Result of a command in one state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BisectVerdict {
    /// The command works.
    Good,
    /// The command fails.
    Bad,
    /// The result is neither.
    Skip,
}

impl BisectVerdict {
    /// Interprets an exit code; `None` if the search must abort.
    pub(crate) fn from_exit_code(exit: i32) -> Option<Self> {
        match exit {
            0 => Some(Self::Good),
            SKIP_CODE => Some(Self::Skip),
            1..FIRST_FATAL_CODE => Some(Self::Bad),
            _ => None,
        }
    }
}

/// The next step of a search.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SearchStep {
    /// Try this state.
    Try(usize),
    /// This state broke the command.
    Found(usize),
    /// One of these states did; those before the last one cannot be tested.
    OneOf(Vec<usize>),
    /// The command works at the tip of the branch.
    NotBroken,
    /// The command already failed at the start of the branch.
    NeverWorked,
    /// The tip or the start of the branch cannot be tested.
    Untestable(usize),
}

/// The states and what is known about them.
#[derive(Debug)]
pub(crate) struct BisectSearch<'a> {
    points: &'a [BisectPoint],
    verdicts: Vec<Option<BisectVerdict>>,
}

impl<'a> BisectSearch<'a> {
    /// Creates a search, starting from the guard results in receipts.
    pub(crate) fn new(points: &'a [BisectPoint]) -> Self {
        let mut search = Self { points, verdicts: vec![None; points.len()] };
        for (index, point) in points.iter().enumerate() {
            // A guard that could not tell, or was killed, gives no result.
            let verdict =
                point.known.and_then(BisectVerdict::from_exit_code).filter(|answer| *answer != BisectVerdict::Skip);
            if let Some(verdict) = verdict {
                search.record_verdict(index, verdict);
            }
        }
        search
    }

    /// Records the result of a state, which also applies to those with identical files.
    pub(crate) fn record_verdict(&mut self, index: usize, verdict: BisectVerdict) {
        for (point, known) in self.points.iter().zip(&mut self.verdicts) {
            if point.files == self.points[index].files {
                *known = Some(verdict);
            }
        }
    }

    /// Returns the next step.
    pub(crate) fn next_step(&self) -> SearchStep {
        let Some(last) = self.points.len().checked_sub(1) else { return SearchStep::NotBroken };
        match self.verdicts[last] {
            None => return SearchStep::Try(last),
            Some(BisectVerdict::Skip) => return SearchStep::Untestable(last),
            Some(BisectVerdict::Good) => return SearchStep::NotBroken,
            Some(BisectVerdict::Bad) => {}
        }
        let Some(good) = self.verdicts.iter().rposition(|known| *known == Some(BisectVerdict::Good)) else {
            return match self.verdicts[0] {
                None => SearchStep::Try(0),
                Some(BisectVerdict::Skip) => SearchStep::Untestable(0),
                Some(BisectVerdict::Good | BisectVerdict::Bad) => SearchStep::NeverWorked,
            };
        };
        let bad = (good + 1..last).find(|at| self.verdicts[*at] == Some(BisectVerdict::Bad)).unwrap_or(last);
        let middle = good.midpoint(bad);
        let untried = (good + 1..bad).filter(|at| self.verdicts[*at].is_none());
        match untried.min_by_key(|at| at.abs_diff(middle)) {
            Some(index) => SearchStep::Try(index),
            None if bad == good + 1 => SearchStep::Found(bad),
            None => SearchStep::OneOf((good + 1..=bad).collect()),
        }
    }

    /// Returns how many states may still be the one that broke the command.
    pub(crate) fn candidates_left(&self) -> usize {
        let last = self.points.len().saturating_sub(1);
        let good = self.verdicts.iter().rposition(|known| *known == Some(BisectVerdict::Good)).unwrap_or(0);
        let bad = (good + 1..last).find(|at| self.verdicts[*at] == Some(BisectVerdict::Bad)).unwrap_or(last);
        bad.saturating_sub(good)
    }
}

#[cfg(test)]
mod tests {
    use protocol::bisect::PointKind;

    use super::*;

    /// Builds states from one letter each, which stands for the files, with known guard results.
    fn points(files: &str, known: &[(usize, i32)]) -> Vec<BisectPoint> {
        let to_point = |(at, files): (usize, char)| BisectPoint {
            commit: at.to_string(),
            files: files.to_string(),
            kind: PointKind::Iteration,
            subject: String::new(),
            iter: None,
            node: None,
            title: None,
            from: None,
            known: known.iter().find(|(known, _)| *known == at).map(|(_, exit)| *exit),
        };
        files.chars().enumerate().map(to_point).collect()
    }

    /// Runs a search with the given exit code per state; returns the states tried, and the outcome.
    fn run_search(points: &[BisectPoint], exits: &[i32]) -> (Vec<usize>, SearchStep) {
        let mut search = BisectSearch::new(points);
        let mut tried = Vec::new();
        loop {
            match search.next_step() {
                SearchStep::Try(at) => {
                    tried.push(at);
                    search.record_verdict(at, BisectVerdict::from_exit_code(exits[at]).expect("an answer"));
                }
                step => return (tried, step),
            }
        }
    }

    #[test]
    fn the_end_comes_first_then_the_beginning_then_halves() {
        let points = points("abcdefgh", &[]);
        let (tried, step) = run_search(&points, &[0, 0, 0, 0, 0, 1, 1, 1]);
        assert_eq!((tried, step), (vec![7, 0, 3, 5, 4], SearchStep::Found(5)));
        assert_eq!(run_search(&points, &[0; 8]), (vec![7], SearchStep::NotBroken));
        assert_eq!(run_search(&points, &[1; 8]), (vec![7, 0], SearchStep::NeverWorked));
    }

    #[test]
    fn what_receipts_say_is_not_tried() {
        let candidates = points("abcdefgh", &[(0, 0), (3, 0), (4, 2), (7, 1)]);
        assert_eq!(run_search(&candidates, &[]), (vec![], SearchStep::Found(4)));
        let candidates = points("abcdefgh", &[(0, 0), (3, 125), (4, 137)]);
        let (tried, step) = run_search(&candidates, &[0, 0, 0, 1, 1, 1, 1, 1]);
        assert_eq!((tried, step), (vec![7, 3, 1, 2], SearchStep::Found(3)), "an undecided result is not an answer");
    }

    #[test]
    fn the_same_files_are_tried_once() {
        // Fixed at the third state, broken again at the last.
        let points = points("abab", &[]);
        assert_eq!(run_search(&points, &[0, 1, 0, 1]), (vec![3, 0], SearchStep::Found(3)));
    }

    #[test]
    fn what_cannot_be_told_is_left_out_and_named_with_the_one_behind_it() {
        let states = points("abcde", &[]);
        assert_eq!(run_search(&states, &[0, 125, 0, 1, 1]).1, SearchStep::Found(3));
        assert_eq!(run_search(&states, &[0, 0, 125, 1, 1]), (vec![4, 0, 2, 1, 3], SearchStep::OneOf(vec![2, 3])));
        assert_eq!(run_search(&states, &[0, 0, 0, 0, 125]).1, SearchStep::Untestable(4));
        assert_eq!(run_search(&states, &[125, 1, 1, 1, 1]).1, SearchStep::Untestable(0));
        assert_eq!(run_search(&points("", &[]), &[]).1, SearchStep::NotBroken);
    }

    #[test]
    fn exit_codes_mean_what_they_mean_to_git_bisect() {
        let verdicts = [0, 1, 124, 125, 126, 127, 128, 137, -1].map(BisectVerdict::from_exit_code);
        let bad = Some(BisectVerdict::Bad);
        assert_eq!(
            verdicts,
            [Some(BisectVerdict::Good), bad, bad, Some(BisectVerdict::Skip), bad, bad, None, None, None]
        );
    }
}
