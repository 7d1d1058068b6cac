//! Cuts a stream of bytes into lines of bounded length.

/// Longest line that is passed on, in bytes; an agent's tools may print a megabyte on one.
pub(super) const MAX_LINE: usize = 8 << 20;

/// A stream being split into lines.
#[derive(Debug, Default)]
pub(super) struct LineSplitter {
    partial: Vec<u8>,
    /// Whether the line has become too long: the rest of it is skipped.
    is_too_long: bool,
}

impl LineSplitter {
    /// Takes bytes, and passes on each line that they complete, without its terminator.
    pub(super) fn push(&mut self, bytes: &[u8], mut take: impl FnMut(&[u8])) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            match part.strip_suffix(b"\n") {
                Some(end) if self.partial.is_empty() && !self.is_too_long => take(end),
                Some(end) => {
                    self.append_part(end);
                    self.finish_line(&mut take);
                }
                None => self.append_part(part),
            }
        }
    }

    /// Passes on a last line without a terminator.
    pub(super) fn finish(&mut self, mut take: impl FnMut(&[u8])) {
        if !self.partial.is_empty() {
            self.finish_line(&mut take);
        }
    }

    fn append_part(&mut self, part: &[u8]) {
        self.is_too_long |= self.partial.len() + part.len() > MAX_LINE;
        if self.is_too_long {
            self.partial = Vec::new();
        } else {
            self.partial.extend_from_slice(part);
        }
    }

    fn finish_line(&mut self, take: &mut impl FnMut(&[u8])) {
        let line = std::mem::take(&mut self.partial);
        if !std::mem::take(&mut self.is_too_long) {
            take(&line);
        }
    }
}

/// Keeps the last bytes of a stream.
#[derive(Debug)]
pub(super) struct StreamTail {
    bytes: Vec<u8>,
    limit: usize,
}

impl StreamTail {
    /// Keeps `limit` bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), limit }
    }

    /// Appends bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let bytes = &bytes[bytes.len().saturating_sub(self.limit)..];
        let surplus = (self.bytes.len() + bytes.len()).saturating_sub(self.limit);
        self.bytes.drain(..surplus);
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the kept bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split_chunks(chunks: &[&[u8]]) -> Vec<Vec<u8>> {
        let mut lines = LineSplitter::default();
        let mut taken = Vec::new();
        for chunk in chunks {
            lines.push(chunk, |line| taken.push(line.to_vec()));
        }
        lines.finish(|line| taken.push(line.to_vec()));
        taken
    }

    #[test]
    fn line_that_is_too_long_is_passed_over_and_the_next_one_is_not() {
        let long = vec![b'x'; MAX_LINE];
        let taken = split_chunks(&[b"a\n", &long, b"y", b"z\nb", b"c\n", &long, b"\nd"]);
        assert_eq!(taken, [b"a".to_vec(), b"bc".to_vec(), long, b"d".to_vec()]);
    }

    proptest! {
        #[test]
        fn lines_are_the_same_however_they_come(text in "[ab\n]{0,40}", cuts: Vec<prop::sample::Index>) {
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|cut| &text.as_bytes()[cut[0]..cut[1]]).collect();
            let whole: Vec<Vec<u8>> = text.lines().map(|line| line.as_bytes().to_vec()).collect();
            prop_assert_eq!(split_chunks(&chunks), whole);
        }

        #[test]
        fn tail_is_the_end_of_the_stream(limit in 0_usize..9, chunks: Vec<Vec<u8>>) {
            let mut tail = StreamTail::new(limit);
            for chunk in &chunks {
                tail.push(chunk);
            }
            let stream = chunks.concat();
            prop_assert_eq!(tail.bytes(), &stream[stream.len().saturating_sub(limit)..]);
        }
    }
}
