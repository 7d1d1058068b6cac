//! Whether a session has resolved the conflicts of a merge, judged by the files alone.

/// The start of the lines around a conflict.
const MARKERS: [&[u8]; 3] = [b"<<<<<<<", b"=======", b">>>>>>>"];

/// Why a file does not show that both sides of a merge are in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ResolutionFault {
    /// It did not conflict, and is not what the merge gives.
    #[error("is not what the merge gives")]
    NotMerged,
    /// Conflict markers are left.
    #[error("has conflict markers")]
    Markers,
    /// A conflict is resolved by one side alone.
    #[error("has only one side of a conflict")]
    OneSide,
    /// Lines that did not conflict are not what the merge gives.
    #[error("differs from the merge outside of its conflicts")]
    OtherLines,
    /// It is removed, binary or of another type, so that no lines show it.
    #[error("does not conflict in lines")]
    NoLines,
}

/// Checks a file that conflicted: `merged` is what the merge has left, with its markers, and `resolved` what is
/// committed.
pub fn check_resolved_file(merged: &[u8], resolved: &[u8]) -> Result<(), ResolutionFault> {
    let conflicts = split_conflicts(merged).ok_or(ResolutionFault::NoLines)?;
    if split_lines(resolved).iter().any(|line| is_marker(line, 0) || is_marker(line, 2)) {
        return Err(ResolutionFault::Markers);
    }
    let mut rest = resolved;
    let mut previous: Option<&Conflict> = None;
    for (place, conflict) in conflicts.iter().enumerate() {
        let is_last = place + 1 == conflicts.len();
        let start = match previous {
            None => rest.starts_with(&conflict.before).then_some(0),
            Some(_) if is_last => {
                rest.len().checked_sub(conflict.before.len()).filter(|at| rest[*at..] == conflict.before)
            }
            Some(_) => find_lines(rest, &conflict.before),
        };
        let start = start.ok_or(ResolutionFault::OtherLines)?;
        if previous.is_some_and(|conflict| rest[..start] == conflict.ours || rest[..start] == conflict.theirs) {
            return Err(ResolutionFault::OneSide);
        }
        rest = &rest[start + conflict.before.len()..];
        previous = Some(conflict);
    }
    Ok(())
}

/// A conflict, and the lines before it; the last entry is only the lines after the last conflict.
#[derive(Default)]
struct Conflict {
    before: Vec<u8>,
    ours: Vec<u8>,
    theirs: Vec<u8>,
}

/// Splits what a merge has left at its conflicts; `None` if there are none, or if the markers are not in pairs.
fn split_conflicts(merged: &[u8]) -> Option<Vec<Conflict>> {
    let mut conflicts = vec![Conflict::default()];
    let mut part = 0;
    for line in split_lines(merged) {
        if let Some(marker) = (0..MARKERS.len()).find(|marker| is_marker(line, *marker)) {
            // A line of equals signs outside of a conflict is text.
            if marker != 1 || part != 0 {
                part = (marker == part).then_some((part + 1) % MARKERS.len())?;
                if part == 0 {
                    conflicts.push(Conflict::default());
                }
                continue;
            }
        }
        let conflict = conflicts.last_mut()?;
        [&mut conflict.before, &mut conflict.ours, &mut conflict.theirs][part].extend_from_slice(line);
    }
    (part == 0 && conflicts.len() > 1).then_some(conflicts)
}

/// Returns the lines with their ends.
fn split_lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

fn is_marker(line: &[u8], marker: usize) -> bool {
    let rest = line.strip_prefix(MARKERS[marker]);
    rest.is_some_and(|rest| if marker == 1 { rest.trim_ascii().is_empty() } else { rest.starts_with(b" ") })
}

/// Returns where lines begin in a text, at the start of one of its lines.
fn find_lines(text: &[u8], lines: &[u8]) -> Option<usize> {
    let starts = split_lines(text).into_iter().scan(0, |at, line| {
        let start = *at;
        *at += line.len();
        Some(start)
    });
    starts.chain([text.len()]).find(|start| text[*start..].starts_with(lines))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MERGED: &[u8] =
        b"a\n<<<<<<< ours\nuno\n=======\neins\n>>>>>>> theirs\nb\n<<<<<<< ours\nx\n=======\n>>>>>>> theirs\nc\n";

    fn check(resolved: &str) -> Result<(), ResolutionFault> {
        check_resolved_file(MERGED, resolved.as_bytes())
    }

    #[test]
    fn both_sides_of_each_conflict_show() {
        assert_eq!(check("a\nuno, eins\nb\ny\nc\n"), Ok(()));
        assert_eq!(check("a\nuno\neins\nb\nx, or nothing\nc\n"), Ok(()));
    }

    #[test]
    fn one_side_alone_does_not_resolve_a_conflict() {
        for lazy in ["a\nuno\nb\ny\nc\n", "a\neins\nb\ny\nc\n", "a\nboth\nb\nx\nc\n", "a\nboth\nb\nc\n"] {
            assert_eq!(check(lazy), Err(ResolutionFault::OneSide), "{lazy}");
        }
    }

    #[test]
    fn other_lines_are_as_the_merge_has_them() {
        for other in ["a\nboth\nb\ny\n", "both\nb\ny\nc\n", "a\nboth\ny\nc\n", ""] {
            assert_eq!(check(other), Err(ResolutionFault::OtherLines), "{other}");
        }
    }

    #[test]
    fn markers_are_found_wherever_they_are() {
        assert_eq!(check_resolved_file(MERGED, MERGED), Err(ResolutionFault::Markers));
        assert_eq!(check("a\nboth\nb\ny\nc\n>>>>>>> theirs\n"), Err(ResolutionFault::Markers));
    }

    #[test]
    fn a_merge_without_lines_shows_nothing() {
        for merged in ["", "\0binary", "======= \n", "<<<<<<< ours\nx\n"] {
            assert_eq!(check_resolved_file(merged.as_bytes(), b"x"), Err(ResolutionFault::NoLines), "{merged}");
        }
    }

    #[test]
    fn a_heading_is_no_marker() {
        let merged = b"Title\n=======\n<<<<<<< ours\nuno\n=======\neins\n>>>>>>> theirs\n";
        assert_eq!(check_resolved_file(merged, b"Title\n=======\nboth\n"), Ok(()));
    }
}
