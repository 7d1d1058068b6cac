//! Bytes as hexadecimal digits. They have one spelling: lower case.

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Returns bytes as digits.
pub fn to_hex(bytes: &[u8]) -> String {
    let nibbles = bytes.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
    nibbles.map(|nibble| char::from(DIGITS[usize::from(nibble)])).collect()
}

/// Parses digits; `None` for any other text.
pub fn from_hex(digits: &str) -> Option<Vec<u8>> {
    let digit = |byte: &u8| DIGITS.iter().position(|known| known == byte).and_then(|at| u8::try_from(at).ok());
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| Some(digit(&pair[0])? << 4 | digit(pair.get(1)?)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_one_spelling() {
        let bytes = [0, 9, 0xa0, 0xff];
        assert_eq!(to_hex(&bytes), "0009a0ff");
        assert_eq!(from_hex("0009a0ff"), Some(bytes.to_vec()));
        for wrong in ["0", "0009A0FF", "0x", " 00", "é"] {
            assert_eq!(from_hex(wrong), None, "{wrong}");
        }
    }
}
