//! `Range` header: which bytes of a text are requested (RFC 9110, 14).

/// The requested part of a text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ByteRange {
    /// The whole text.
    All,
    /// The bytes from `first` up to, excluding, `end`; at least one.
    Part {
        /// The first byte.
        first: u64,
        /// One past the last byte.
        end: u64,
    },
    /// No byte of the text.
    Unsatisfiable,
}

/// Parses a range for a text of the given size. Anything but a single byte range is ignored.
pub(crate) fn parse_range(range: Option<&str>, size: u64) -> ByteRange {
    let range = range.and_then(|range| range.strip_prefix("bytes=")).and_then(|range| range.trim().split_once('-'));
    let (first, end) = match range.map(|(first, last)| (parse_number(first), parse_number(last))) {
        Some((Ok(Some(first)), Ok(None))) => (first, size),
        Some((Ok(Some(first)), Ok(Some(last)))) if first <= last => (first, last.saturating_add(1).min(size)),
        Some((Ok(None), Ok(Some(count)))) => (size.saturating_sub(count), size),
        _ => return ByteRange::All,
    };
    if first < end { ByteRange::Part { first, end } } else { ByteRange::Unsatisfiable }
}

/// Parses an optional number; a number that is too large is beyond the end of any text.
fn parse_number(text: &str) -> Result<Option<u64>, ()> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(());
    }
    Ok((!text.is_empty()).then(|| text.parse().unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn part_of(first: u64, end: u64) -> ByteRange {
        ByteRange::Part { first, end }
    }

    #[test]
    fn one_range_is_understood() {
        let parse_for_ten = |range| parse_range(Some(range), 10);
        assert_eq!(parse_for_ten("bytes=0-3"), part_of(0, 4));
        assert_eq!(parse_for_ten("bytes=4-"), part_of(4, 10));
        assert_eq!(parse_for_ten("bytes=4-99"), part_of(4, 10));
        assert_eq!(parse_for_ten("bytes=-3"), part_of(7, 10));
        assert_eq!(parse_for_ten("bytes=-99"), part_of(0, 10));
        assert_eq!(parse_for_ten("bytes=9-9"), part_of(9, 10));
    }

    #[test]
    fn what_is_not_there_yet_is_told_apart() {
        let parse_for_ten = |range| parse_range(Some(range), 10);
        assert!(
            ["bytes=10-", "bytes=10-20", "bytes=-0"]
                .into_iter()
                .all(|range| parse_for_ten(range) == ByteRange::Unsatisfiable)
        );
        assert_eq!(parse_range(Some("bytes=0-"), 0), ByteRange::Unsatisfiable);
        assert_eq!(parse_range(Some("bytes=-5"), 0), ByteRange::Unsatisfiable);
    }

    #[test]
    fn what_is_no_range_is_as_if_it_were_not_there() {
        let odd =
            ["", "bytes", "bytes=", "bytes=-", "bytes=3-1", "bytes=a-b", "bytes=0-1,3-4", "lines=0-1", "bytes=+1-2"];
        assert!(odd.into_iter().all(|range| parse_range(Some(range), 10) == ByteRange::All));
        assert_eq!(parse_range(None, 10), ByteRange::All);
    }

    proptest! {
        #[test]
        fn a_part_is_never_empty_and_never_outside(range in "bytes=[0-9]{0,21}-[0-9]{0,21}", size in 0_u64..1000) {
            if let ByteRange::Part { first, end } = parse_range(Some(&range), size) {
                prop_assert!(first < end && end <= size);
            }
        }
    }
}
