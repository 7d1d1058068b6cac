//! What lines look like from outside.

use lines::{csv_line, semicolon_line, tab_line};

#[test]
fn plain_fields_are_joined() {
    assert_eq!(csv_line(&["a", "b"]), "a,b");
    assert_eq!(semicolon_line(&["a", "b"]), "a;b");
    assert_eq!(tab_line(&["a", "b"]), "a\tb");
}

#[test]
fn quotes_are_doubled() {
    assert_eq!(csv_line(&["say \"a\"", ""]), "\"say \"\"a\"\"\",");
    assert_eq!(semicolon_line(&["say \"a\""]), "\"say \"\"a\"\"\"");
    assert_eq!(tab_line(&["say \"a\""]), "\"say \"\"a\"\"\"");
}

#[test]
fn only_its_own_delimiter_is_escaped() {
    assert_eq!(csv_line(&["a;b", "c,d"]), "a;b,\"c,d\"");
    assert_eq!(semicolon_line(&["a;b", "c,d"]), "\"a;b\";c,d");
    assert_eq!(tab_line(&["a\tb", "c,d"]), "\"a\tb\"\tc,d");
}
