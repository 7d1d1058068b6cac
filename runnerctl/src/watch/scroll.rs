//! The visible part of a list that grows at its end: the end, or the position a user has scrolled to.

/// The number of the element after the last visible one; `None` while the end is followed.
///
/// The visible part stays the same when elements are added.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ScrollPosition(Option<usize>);

impl ScrollPosition {
    /// Returns the number of the element after the last visible one.
    pub(crate) fn end(self, (first, next): (usize, usize)) -> usize {
        self.0.map_or(next, |end| end.clamp(first.saturating_add(1).min(next), next))
    }

    /// Scrolls; at the end, the view follows it again.
    pub(crate) fn scroll_by(&mut self, by: isize, range: (usize, usize)) {
        let end = self.end(range).saturating_add_signed(by).max(range.0.saturating_add(1));
        self.0 = (end < range.1).then_some(end);
    }

    /// Whether the end is visible.
    pub(crate) fn is_following(self) -> bool {
        self.0.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_view_stays_while_more_is_added() {
        let mut scroll = ScrollPosition::default();
        scroll.scroll_by(-3, (0, 10));
        assert_eq!((scroll.end((0, 10)), scroll.end((0, 50))), (7, 7));
        scroll.scroll_by(99, (0, 50));
        assert!(scroll.is_following());
    }

    #[test]
    fn what_was_forgotten_gives_way_to_the_oldest_that_is_kept() {
        let mut scroll = ScrollPosition::default();
        scroll.scroll_by(-99, (0, 10));
        assert_eq!((scroll.end((0, 10)), scroll.end((40, 50))), (1, 41));
        assert_eq!(ScrollPosition::default().end((0, 0)), 0);
    }
}
