//! Decides whether two lines differ only in their numbers, and whether a line names a place in a file.

/// Hexadecimal words of at least this length are ids.
const ID_LEN: usize = 6;

/// Returns a key shared by lines that differ only in numbers, times and hexadecimal ids.
pub(super) fn shape_hash(line: &str) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    let mut hash = OFFSET;
    let mut before = b' ';
    // State of the word being read: the hash before it, its length, whether it may be an id, whether it has a digit.
    let mut front = OFFSET;
    let mut len = 0;
    let mut is_hex = true;
    let mut has_digit = false;
    for byte in line.bytes() {
        if byte.is_ascii_alphanumeric() {
            (len, is_hex, has_digit) =
                (len + 1, is_hex && byte.is_ascii_hexdigit(), has_digit || byte.is_ascii_digit());
        } else {
            if len >= ID_LEN && is_hex && has_digit {
                hash = hash_byte(front, b'0');
            }
            (len, is_hex, has_digit) = (0, true, false);
        }
        let is_same_number = before.is_ascii_digit() && (byte.is_ascii_digit() || matches!(byte, b'.' | b':'));
        if !is_same_number {
            hash = hash_byte(hash, if byte.is_ascii_digit() { b'0' } else { byte });
        }
        before = if is_same_number { b'0' } else { byte };
        front = if len == 0 { hash } else { front };
    }
    if len >= ID_LEN && is_hex && has_digit { hash_byte(front, b'0') } else { hash }
}

/// Adds a byte to a hash (FNV-1a).
fn hash_byte(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
}

/// Whether the line names a place in a file, such as `src/lib.rs:12` or `a.ts(3,5)`.
pub(super) fn has_location(line: &str) -> bool {
    if !line.contains(':') && !line.contains('(') {
        return line.contains('"') && line.contains("\", line ");
    }
    let bytes = line.as_bytes();
    let is_start = |at: usize| bytes.get(at + 1).is_some_and(u8::is_ascii_digit);
    let follows_name = |at: usize| {
        let name = line[..at].rsplit(|c: char| c.is_whitespace() || matches!(c, '(' | '"' | '\'')).next();
        let extension = name.and_then(|name| name.rsplit_once('.')).map_or("", |(_, extension)| extension);
        extension.starts_with(|c: char| c.is_ascii_alphabetic()) && extension.len() <= 6
    };
    let marks = line.match_indices([':', '(']).take(16);
    marks.map(|(at, _)| at).any(|at| is_start(at) && follows_name(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_in_files_are_told_from_other_numbers() {
        let places = ["src/lib.rs:12", "  at a.ts(3,5)", "  File \"x.py\", line 8, in y", "./shop.go:5:2: undefined"];
        let others = ["12:30:01 waiting", "127.0.0.1:5432", "ratio 3:4", "f(3)", "localhost:80"];
        assert_eq!(places.iter().filter(|line| !has_location(line)).collect::<Vec<_>>(), Vec::<&&str>::new());
        assert_eq!(others.iter().filter(|line| has_location(line)).collect::<Vec<_>>(), Vec::<&&str>::new());
    }

    #[test]
    fn lines_that_count_have_one_key() {
        assert_eq!(shape_hash("waiting, 1.5 s"), shape_hash("waiting, 120 s"));
        assert_eq!(shape_hash("order 7f3b02 is open"), shape_hash("order b026324c69 is open"));
        assert_ne!(shape_hash("waiting"), shape_hash("working"));
        assert_ne!(shape_hash("decade"), shape_hash("facade"));
    }
}
