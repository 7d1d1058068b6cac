//! The search for the state of a branch that broke a command: what is known of each, and which is tried next.
//!
//! Pure. States with the same files have the same answer; the state that is looked for is the last one that is bad where
//! the one before it is good.

use protocol::bisect::BisectPoint;

/// What `git bisect run` takes for "cannot be told".
const SKIP: i32 = 125;
/// From here on an exit code says nothing of the files.
const ABORTS: i32 = 128;

/// What a command said of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It works.
    Good,
    /// It is broken.
    Bad,
    /// It cannot be told.
    Skip,
}

impl Answer {
    /// Reads an exit code; none where the search must not go on.
    pub(crate) fn of(exit: i32) -> Option<Self> {
        match exit {
            0 => Some(Self::Good),
            SKIP => Some(Self::Skip),
            1..ABORTS => Some(Self::Bad),
            _ => None,
        }
    }
}

/// What is done next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// This state is tried.
    Try(usize),
    /// This one broke it.
    Found(usize),
    /// One of these did; the ones before the last cannot be told.
    Among(Vec<usize>),
    /// The command works at the end of the branch.
    Works,
    /// It did not work at the beginning.
    NeverWorked,
    /// At the end or at the beginning it cannot be told.
    Unknown(usize),
}

/// The states and what is known of them.
#[derive(Debug)]
pub(crate) struct Search<'a> {
    points: &'a [BisectPoint],
    answers: Vec<Option<Answer>>,
}

impl<'a> Search<'a> {
    /// Begins with what receipts say.
    pub(crate) fn new(points: &'a [BisectPoint]) -> Self {
        let mut search = Self { points, answers: vec![None; points.len()] };
        for (at, point) in points.iter().enumerate() {
            // That a guard could not tell, or was ended, is no answer.
            let told = point.known.and_then(Answer::of).filter(|answer| *answer != Answer::Skip);
            if let Some(answer) = told {
                search.learn(at, answer);
            }
        }
        search
    }

    /// Takes in what is the case at a state, and at those with the same files.
    pub(crate) fn learn(&mut self, at: usize, answer: Answer) {
        for (point, known) in self.points.iter().zip(&mut self.answers) {
            if point.files == self.points[at].files {
                *known = Some(answer);
            }
        }
    }

    /// Says what is done next.
    pub(crate) fn next(&self) -> Step {
        let Some(last) = self.points.len().checked_sub(1) else { return Step::Works };
        match self.answers[last] {
            None => return Step::Try(last),
            Some(Answer::Skip) => return Step::Unknown(last),
            Some(Answer::Good) => return Step::Works,
            Some(Answer::Bad) => {}
        }
        let Some(good) = self.answers.iter().rposition(|known| *known == Some(Answer::Good)) else {
            return match self.answers[0] {
                None => Step::Try(0),
                Some(Answer::Skip) => Step::Unknown(0),
                Some(Answer::Good | Answer::Bad) => Step::NeverWorked,
            };
        };
        let bad = (good + 1..last).find(|at| self.answers[*at] == Some(Answer::Bad)).unwrap_or(last);
        let middle = good.midpoint(bad);
        let untried = (good + 1..bad).filter(|at| self.answers[*at].is_none());
        match untried.min_by_key(|at| at.abs_diff(middle)) {
            Some(at) => Step::Try(at),
            None if bad == good + 1 => Step::Found(bad),
            None => Step::Among((good + 1..=bad).collect()),
        }
    }

    /// How many states may still be the one.
    pub(crate) fn left(&self) -> usize {
        let last = self.points.len().saturating_sub(1);
        let good = self.answers.iter().rposition(|known| *known == Some(Answer::Good)).unwrap_or(0);
        let bad = (good + 1..last).find(|at| self.answers[*at] == Some(Answer::Bad)).unwrap_or(last);
        bad.saturating_sub(good)
    }
}

#[cfg(test)]
mod tests {
    use protocol::bisect::PointKind;

    use super::*;

    /// States whose files are told by a letter each, with what receipts say of them.
    fn points(files: &str, known: &[(usize, i32)]) -> Vec<BisectPoint> {
        let of = |(at, files): (usize, char)| BisectPoint {
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
        files.chars().enumerate().map(of).collect()
    }

    /// Plays a search in which the command ends so at each state; returns what was tried, and how it came out.
    fn play(points: &[BisectPoint], exits: &[i32]) -> (Vec<usize>, Step) {
        let (mut search, mut tried) = (Search::new(points), Vec::new());
        loop {
            match search.next() {
                Step::Try(at) => {
                    tried.push(at);
                    search.learn(at, Answer::of(exits[at]).expect("an answer"));
                }
                step => return (tried, step),
            }
        }
    }

    #[test]
    fn the_end_comes_first_then_the_beginning_then_halves() {
        let points = points("abcdefgh", &[]);
        let (tried, step) = play(&points, &[0, 0, 0, 0, 0, 1, 1, 1]);
        assert_eq!((tried, step), (vec![7, 0, 3, 5, 4], Step::Found(5)));
        assert_eq!(play(&points, &[0; 8]), (vec![7], Step::Works));
        assert_eq!(play(&points, &[1; 8]), (vec![7, 0], Step::NeverWorked));
    }

    #[test]
    fn what_receipts_say_is_not_tried() {
        let told = points("abcdefgh", &[(0, 0), (3, 0), (4, 2), (7, 1)]);
        assert_eq!(play(&told, &[]), (vec![], Step::Found(4)));
        let told = points("abcdefgh", &[(0, 0), (3, 125), (4, 137)]);
        let (tried, step) = play(&told, &[0, 0, 0, 1, 1, 1, 1, 1]);
        assert_eq!((tried, step), (vec![7, 3, 1, 2], Step::Found(3)), "that it could not be told is no answer");
    }

    #[test]
    fn the_same_files_are_tried_once() {
        // Taken back at the third state, broken again at the last.
        let points = points("abab", &[]);
        assert_eq!(play(&points, &[0, 1, 0, 1]), (vec![3, 0], Step::Found(3)));
    }

    #[test]
    fn what_cannot_be_told_is_left_out_and_named_with_the_one_behind_it() {
        let states = points("abcde", &[]);
        assert_eq!(play(&states, &[0, 125, 0, 1, 1]).1, Step::Found(3));
        assert_eq!(play(&states, &[0, 0, 125, 1, 1]), (vec![4, 0, 2, 1, 3], Step::Among(vec![2, 3])));
        assert_eq!(play(&states, &[0, 0, 0, 0, 125]).1, Step::Unknown(4));
        assert_eq!(play(&states, &[125, 1, 1, 1, 1]).1, Step::Unknown(0));
        assert_eq!(play(&points("", &[]), &[]).1, Step::Works);
    }

    #[test]
    fn exit_codes_mean_what_they_mean_to_git_bisect() {
        let of = [0, 1, 124, 125, 126, 127, 128, 137, -1].map(Answer::of);
        let bad = Some(Answer::Bad);
        assert_eq!(of, [Some(Answer::Good), bad, bad, Some(Answer::Skip), bad, bad, None, None, None]);
    }
}
